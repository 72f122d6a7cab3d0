"""Reading CIFAR's binary files: records of one or two labels (one byte each) and the 3,072 bytes of an image.

CIFAR is better known as Python pickles, which are programs; nothing here loads one.
"""

import hashlib
from pathlib import Path

import numpy as np

from fl.arrays import Labels, Pixels
from fl.compressed import uncompressed
from fl.dataset import FileError, Shape

MOST_RECORDS = 200_000
"""In one file; CIFAR's largest has 50,000."""


def read(path: Path, shape: Shape, labels: int, *, labels_before: int = 0) -> tuple[Pixels, Labels, str]:
    """Read a file of records.

    Args:
        path: the file, plain or gzip-compressed with a name that ends in ``.gz``.
        shape: the shape of its images.
        labels: the number of different labels.
        labels_before: other labels of a record, before the one that counts (CIFAR-100's twenty groups).

    Returns:
        Images [n, C, H, W], labels [n], and the SHA-256 of the (uncompressed) file.

    Raises:
        FileError: it cannot be read, is not a whole number of records, or holds a label out of range.
    """
    head, pixels = labels_before + 1, shape.channels * shape.height * shape.width
    size = head + pixels
    with uncompressed(path) as file:
        content = file.read(MOST_RECORDS * size + 1)
    if not content or len(content) % size or len(content) > MOST_RECORDS * size:
        raise FileError(
            f"it has {len(content):,} bytes, which is not a whole number of records of {size:,} bytes (1 to "
            f"{MOST_RECORDS:,})"
        )
    table = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    found = table[:, labels_before]
    if found.max() >= labels:
        raise FileError(f"it holds the label {int(found.max())}; labels are 0 to {labels - 1}")
    images = table[:, head:].reshape(-1, *shape)
    if images.min() == images.max():
        raise FileError("its images are blank")
    return np.ascontiguousarray(images), found.copy(), hashlib.sha256(content).hexdigest()
