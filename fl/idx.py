"""Reading IDX files, the format of MNIST and its relatives, with every check before a number is believed.

A file is a big-endian header (two zero bytes, the type of the numbers, the number of dimensions, then each dimension as
four bytes) and the numbers. Files may be gzip-compressed, with names that end in ``.gz``.
"""

import hashlib
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from fl.arrays import AnyArray, Labels, Pixels
from fl.compressed import uncompressed
from fl.dataset import FileError

MAX_ITEMS = 2_000_000
"""No data set of this family has more images: a header with a larger number is corrupt, and memory is finite."""
EXTENDED_COLUMNS = 8
"""Numbers for each image in QMNIST's files of labels (``idx2-int``): the class, then who wrote it and where."""

_UNSIGNED_BYTE, _INT = 0x08, 0x0C
_NUMBERS: dict[int, np.dtype[Any]] = {_UNSIGNED_BYTE: np.dtype(">u1"), _INT: np.dtype(">i4")}


class IdxError(FileError):
    """A file cannot be read or is not an IDX file of the expected kind."""


def read_images(path: Path, height: int, width: int) -> tuple[Pixels, str]:
    """Read a file of images.

    Args:
        path: the file.
        height, width: what its images must have, in pixels.

    Returns:
        Read-only images [n, height, width], and the SHA-256 of the (uncompressed) file.

    Raises:
        IdxError: it cannot be read, or is not a file of images of that size.
    """
    images, digest = _read(path, _UNSIGNED_BYTE, (height, width))
    if images.min() == images.max():
        raise IdxError("its images are blank")
    return cast(Pixels, images), digest


def read_labels(path: Path, count: int, labels: int, first: int = 0) -> tuple[Labels, str]:
    """Read a file of labels, plain (``idx1-ubyte``) or extended (``idx2-int``) according to its name.

    Args:
        path: the file.
        count: the number of images that the labels belong to.
        labels: the number of different labels.
        first: the lowest label in the file.

    Returns:
        Read-only labels [n], counted from 0, and the SHA-256 of the (uncompressed) file.

    Raises:
        IdxError: it cannot be read, is not a file of labels, holds a label out of range, or not one for each image.
    """
    if "idx2-int" in path.name:
        table, digest = _read(path, _INT, (EXTENDED_COLUMNS,))
        stored = table[:, 0]
    else:
        stored, digest = _read(path, _UNSIGNED_BYTE, ())
    if len(stored) != count:
        raise IdxError(f"it holds {len(stored):,} labels for {count:,} images")
    lowest, highest = int(stored.min()), int(stored.max())
    if lowest < first or highest >= first + labels:
        wrong = lowest if lowest < first else highest
        raise IdxError(f"it holds the label {wrong}; labels are {first} to {first + labels - 1}")
    result = (stored - first).astype(np.uint8)
    result.setflags(write=False)
    return result, digest


def _read(path: Path, kind: int, item: tuple[int, ...]) -> tuple[AnyArray, str]:
    """Return the numbers [n, *item], read-only, and the SHA-256 of the uncompressed file."""
    with uncompressed(path, IdxError) as file:
        return _parse(file, kind, item)


def _parse(file: BinaryIO, kind: int, item: tuple[int, ...]) -> tuple[AnyArray, str]:
    magic = bytes([0, 0, kind, 1 + len(item)])
    header = file.read(4 + 4 * (1 + len(item)))
    if header[:4] != magic:
        found = f"starts with 0x{header[:4].hex()}" if header else "is empty"
        raise IdxError(f"it {found}; the magic number here is 0x{magic.hex()}")
    if len(header) < 4 + 4 * (1 + len(item)):
        raise IdxError("it ends within its header")
    count, *shape = (int(dimension) for dimension in np.frombuffer(header, dtype=">u4", offset=4))
    if tuple(shape) != item:
        raise IdxError(f"its items have the dimensions {_times(shape)}; they must be {_times(item)}")
    if not 1 <= count <= MAX_ITEMS:
        raise IdxError(f"its header says {count:,} items; there must be 1 to {MAX_ITEMS:,}")
    numbers = _NUMBERS[kind]
    size = count * int(np.prod(item, dtype=np.int64)) * numbers.itemsize
    body = file.read(size + 1)
    if len(body) < size:
        raise IdxError(f"it is cut off: {len(header) + len(body):,} bytes instead of {len(header) + size:,}")
    if len(body) > size:
        raise IdxError(f"it is longer than the {len(header) + size:,} bytes that its header announces")
    digest = hashlib.sha256(header)
    digest.update(body)
    return np.frombuffer(body, dtype=numbers).reshape(count, *item), digest.hexdigest()


def _times(shape: tuple[int, ...] | list[int]) -> str:
    return " x ".join(map(str, shape))
