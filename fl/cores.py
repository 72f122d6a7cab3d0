"""How many cores this process may use."""

import os


def usable_cores() -> int:
    """Return the cores that this process may run on, at least 1; on systems that cannot tell, those of the machine."""
    if hasattr(os, "sched_getaffinity"):  # absent on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
