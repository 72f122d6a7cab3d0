"""A runner that says nothing, hears nothing, and does not go when told to."""

import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    time.sleep(3600)
