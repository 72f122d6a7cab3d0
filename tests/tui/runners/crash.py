"""A runner that dies in the middle of a word."""

import os
import sys

sys.stdin.readline()
print("the battery is empty", file=sys.stderr, flush=True)
print('{"type": "sta', end="", flush=True)
os.abort()
