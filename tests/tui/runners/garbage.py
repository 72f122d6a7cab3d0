"""A runner that says what is no protocol."""

import sys
import time

sys.stdin.readline()
print("Epoch 1/10 loss=0.3", flush=True)
time.sleep(3600)
