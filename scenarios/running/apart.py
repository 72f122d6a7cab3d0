"""A process in which plug-ins run for a user who is elsewhere."""

import os
import signal
import sys
from typing import TextIO


def apart_from_user() -> TextIO:
    """Set this process apart from the user, and return its standard output, a line at a time, for messages alone.

    Ctrl-C is not for it. What else is printed goes to standard error.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return messages
