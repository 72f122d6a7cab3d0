"""The number of processor cores that this process may use."""

import os


def usable_cores() -> int:
    """Return the number of cores: those that this process is allowed to run on, where the system can tell."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
