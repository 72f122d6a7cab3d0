"""Real handwritten digits that come with scikit-learn: no download.

The test set of the UCI "Optical Recognition of Handwritten Digits": 1,797 digits of 8 x 8 pixels, each counting from 0
to 16 how much ink fell on it. All arithmetic on them is in integers, so that the result has the same bytes everywhere.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fl.arrays import IntArray, Pixels

LABELS = 10
MOST_INK = 16
SMALL_SIDE = 8  # pixels of a side as scikit-learn has it
ENLARGED = 3
BORDER = 2
SIDE = SMALL_SIDE * ENLARGED + 2 * BORDER  # 28, as in MNIST
FOLDS = 5
TEST_FOLD = 2
TABLE = "datasets/data/digits.csv.gz"
"""scikit-learn's own file: a row for each image, with its 64 pixels and its label."""


def digits() -> tuple[Pixels, Pixels, Pixels, Pixels]:
    """Return training images [1438, 28, 28], their labels [1438], and the same of the 359 test images.

    The test split takes every fifth digit of each label, in scikit-learn's order.
    """
    images, labels = _ink()
    large = np.pad(enlarge(images), ((0, 0), (BORDER, BORDER), (BORDER, BORDER)))
    test = np.zeros(len(labels), dtype=bool)
    for label in range(LABELS):
        test[np.flatnonzero(labels == label)[TEST_FOLD::FOLDS]] = True
    return large[~test], labels[~test], large[test], labels[test]


def _ink() -> tuple[IntArray, Pixels]:
    """Return the images [1797, 8, 8] of 0 to 16 and their labels [1797].

    scikit-learn takes two seconds to import, mostly for SciPy, and the images are one table among its files.
    """
    package = find_spec("sklearn")
    folders = package.submodule_search_locations if package else None
    table = Path(folders[0], TABLE) if folders else None
    if table and table.is_file():
        values = np.loadtxt(table, delimiter=",", dtype=np.int64)
        images, labels = values[:, :-1], values[:, -1]
    else:  # a release that keeps its files elsewhere
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
    return images.astype(np.int64).reshape(-1, SMALL_SIDE, SMALL_SIDE), labels.astype(np.uint8)


def enlarge(images: IntArray) -> Pixels:
    """Return images [n, 3h, 3w] of 0 to 255 from images [n, h, w] of 0 to 16, by linear interpolation."""
    for axis in (1, 2):
        before, at, after = (np.roll(_bordered(images, axis), shift, axis) for shift in (1, 0, -1))
        thirds = np.stack([before + 2 * at, 3 * at, 2 * at + after], axis=axis + 1)
        inner = np.take(thirds, range(1, images.shape[axis] + 1), axis=axis)
        shape = list(images.shape)
        shape[axis] *= 3
        images = inner.reshape(shape)
    full = 9 * MOST_INK  # both directions multiplied by three
    pixels: Pixels = ((images * 255 + full // 2) // full).astype(np.uint8)
    return pixels


def _bordered(images: IntArray, axis: int) -> IntArray:
    return np.pad(images, [(1, 1) if each == axis else (0, 0) for each in range(3)])
