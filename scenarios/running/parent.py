"""A process that was started for some work ends with the process that started it, however that one ends."""

import ctypes
import os
import signal
import sys
import threading
from multiprocessing import parent_process


def end_with_parent() -> None:
    """Let Linux end this process with the one that started it, even while a policy keeps all of Python from running.

    Elsewhere, and should that one have ended before this is called, something has to notice its end in Python.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def end_with_parent_of_pool() -> None:
    """Let this process of ``multiprocessing`` end with the one that started it.

    Its tasks come through a pipe that its siblings hold, too, so it would wait for the next one for ever.
    """
    end_with_parent()
    if (parent := parent_process()) is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
