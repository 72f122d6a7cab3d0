"""Readers of downloaded files: IDX (MNIST and its relatives), CIFAR's records, SVHN's MATLAB; none runs code of a file.

What is wrong with a file raises whatever NumPy or SciPy raise: the caller names the file.
"""

import gzip
import hashlib
import io
from pathlib import Path

import numpy as np

from fl.arrays import AnyArray


def content(path: Path) -> tuple[bytes, str]:
    """Return a file's bytes, uncompressed if its name ends in ``.gz``, and their SHA-256."""
    found = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return found, hashlib.sha256(found).hexdigest()


def idx(data: bytes) -> AnyArray:
    """Return the array of an IDX file: two zeros, 8 for bytes, the number of dimensions, these, and the bytes."""
    if data[:3] != b"\0\0\x08":
        raise ValueError(f"it starts with 0x{data[:3].hex()}, not with 0x000008")
    dimensions = data[3]
    shape = np.frombuffer(data, ">u4", dimensions, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def records(data: bytes) -> tuple[AnyArray, AnyArray]:
    """Return images [n, 3, 32, 32] and labels [n] of a file of CIFAR's records: a label, then the bytes of an image."""
    table = np.frombuffer(data, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    return table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0]


def matlab(data: bytes) -> tuple[AnyArray, AnyArray]:
    """Return images [n, 3, 32, 32] and labels [n] of one of SVHN's files, which has the label 10 for the digit 0."""
    from scipy.io import loadmat  # takes its time to import

    found = loadmat(io.BytesIO(data), variable_names=("X", "y"))
    return found["X"].transpose(3, 2, 0, 1), found["y"].ravel() % 10
