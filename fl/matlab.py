"""Reading SVHN's MATLAB files: images ``X`` [height, width, channels, n] and labels ``y`` [n, 1], the digit 0 as 10."""

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from fl.arrays import Labels, Pixels
from fl.compressed import uncompressed
from fl.dataset import FileError, Shape

MOST_BYTES = 1 << 30
"""Of a file; SVHN's larger one has 182 MB."""

_HEADER = b"MATLAB 5.0 MAT-file"


def read(path: Path, shape: Shape, labels: int) -> tuple[Pixels, Labels, str]:
    """Read a file of images and their labels.

    Args:
        path: the file, plain or gzip-compressed with a name that ends in ``.gz``.
        shape: the shape of its images.
        labels: the number of different labels; the file counts them from 1, and has the highest in place of 0.

    Returns:
        Images [n, C, H, W], labels [n] from 0, and the SHA-256 of the (uncompressed) file.

    Raises:
        FileError: it cannot be read, or is not a file of such images.
    """
    with uncompressed(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise FileError(f"it is larger than {MOST_BYTES:,} bytes")
    if not content.startswith(_HEADER):
        raise FileError(f"it does not begin with {_HEADER.decode()!r}")
    images, stored = _arrays(content)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (shape.height, shape.width, shape.channels):
        raise FileError(
            f"its images X are {images.dtype} {list(images.shape)}; they must be uint8 [{shape.height}, {shape.width}, "
            f"{shape.channels}, n]"
        )
    count = images.shape[3]
    if stored.dtype.kind not in "iuf" or stored.size != count or not count:
        raise FileError(f"it holds {stored.size:,} labels y ({stored.dtype}) for {count:,} images")
    if wrong := set(np.unique(stored).tolist()) - set(range(1, labels + 1)):
        raise FileError(f"it holds the label {min(wrong)}; labels are 1 to {labels}")
    if images.min() == images.max():
        raise FileError("its images are blank")
    numbers = stored.reshape(-1).astype(np.uint8) % labels
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), numbers, hashlib.sha256(content).hexdigest()


def _arrays(content: bytes) -> tuple[Any, Any]:
    """Return X and y. A MATLAB file of numbers holds no code; what else one may hold is not asked for."""
    from scipy.io import loadmat  # takes its time to import

    try:
        found = loadmat(io.BytesIO(content), variable_names=("X", "y"))
    except Exception as error:  # of damaged files: errors of many kinds
        raise FileError(f"it is damaged: {error or type(error).__name__}") from error
    if missing := [name for name in ("X", "y") if not isinstance(found.get(name), np.ndarray)]:
        raise FileError(f"it lacks the array {' and '.join(missing)}")
    return found["X"], found["y"]
