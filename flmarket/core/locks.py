"""Locks of files and folders, which show other processes what a process is writing.

They end with the process that holds them, however it ends. On a file system without locks, no process waits.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flmarket.core.errors import InputError


def lock(descriptor: int) -> bool:
    """Lock a file until it is closed; whether that is so. A file system without locks grants all of them."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file or folder. Where the file system has no locks, none seems to."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for a folder. Where the file system has no locks, do not wait."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}; choose another folder") from error
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
