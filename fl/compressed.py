"""Files of images as data sets keep them: plain, or gzip-compressed with names that end in ``.gz``."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from fl.dataset import FileError


@contextmanager
def uncompressed(path: Path, problem: type[FileError] = FileError) -> Iterator[BinaryIO]:
    """Open a file for reading its content, whichever way it is kept.

    Args:
        path: the file.
        problem: the class of the error.

    Raises:
        FileError: it cannot be opened, or cannot be read while it is open.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except (OSError, EOFError, zlib.error) as error:  # gzip's complaints about damaged files are among these
        raise problem(f"it cannot be read: {error}") from error
