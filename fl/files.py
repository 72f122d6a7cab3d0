"""Writing files so that a crash, a full disk or a power cut leaves either the old content or the new.

Every file of results and every file of the user's that is written in one piece goes through ``replacing``: aside, onto
the disk, and then renamed. Files that grow (logs, measured points) are appended to.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fl.errors import RunError


class WriteError(RunError):
    """A file of a run cannot be written; the message names the file and the reason."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(path, error)
        self.path, self.error = path, error

    def __str__(self) -> str:
        return f"{self.path}: cannot be written: {self.error.strerror}; the same command continues from what is there"


def unfinished(name: str) -> str:
    """Return what a file is called while it is being written."""
    return f".{name}.part"


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file that takes the place of ``path`` once the block ends and all of it is on the disk.

    If the block raises, or the disk is full, what was at ``path`` stays as it was and nothing else is left behind.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    new = path.with_name(unfinished(path.name))
    try:
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        _sync_folder(path.parent)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def replacing_text(path: Path) -> Iterator[IO[str]]:
    """Open a text file as ``replacing`` does: UTF-8, line ends as they are written."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()  # flushes, and leaves closing to ``replacing``


def write_durably(path: Path, content: bytes) -> None:
    """Write a file in one step, and onto the disk itself.

    Raises:
        WriteError: the disk is full or the folder cannot be written; what was there is as it was.
    """
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise WriteError(path, error) from error


def _sync_folder(folder: Path) -> None:
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
