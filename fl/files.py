"""Writing files so that a crash, a full disk or a power cut leaves either the old content or the new."""

import os
from pathlib import Path

from fl.errors import RunError


class WriteError(RunError):
    """A file of a run can't be written; says which and why."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(path, error)
        self.path, self.error = path, error

    def __str__(self) -> str:
        return f"{self.path}: can't be written: {self.error.strerror}; the same command continues from what is there"


def unfinished(name: str) -> str:
    """Return what a file is called while it is being written."""
    return f".{name}.part"


def write_durably(path: Path, content: bytes) -> None:
    """Write a file in one step, and onto the disk itself.

    Raises:
        WriteError: the disk is full or the folder can't be written; what was there is as it was.
    """
    new = path.with_name(unfinished(path.name))
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(path, error) from error


def sync_folder(folder: Path) -> None:
    """Put a folder's list of names onto the disk, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_fully(descriptor: int, content: bytes) -> None:
    """Write all bytes; a disk that fills up half-way is an OSError, after what still fitted."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
