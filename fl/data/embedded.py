"""Data sets that come with flmarket, or with scikit-learn: made on the spot, without a network."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import numpy as np

from fl.arrays import ByteArray, IntArray, Labels
from fl.data import strokes
from fl.data.dataset import ARRAY_NAMES, Arrays, Dataset, DatasetError, DatasetInfo, Shape, Source

# Of the digits that come with scikit-learn: the test set of the UCI "Optical Recognition of Handwritten Digits", each
# pixel counting from 0 to 16 how much ink fell on it.
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


def digits() -> Arrays:
    """Return training images [1438, 28, 28], their labels [1438], and the same of the 359 test images.

    All arithmetic on them is in integers, so that the result has the same bytes everywhere.

    The test split takes every fifth digit of each label, in scikit-learn's order.
    """
    images, labels = _ink()
    large = np.pad(enlarge(images), ((0, 0), (BORDER, BORDER), (BORDER, BORDER)))
    test = np.zeros(len(labels), dtype=bool)
    for label in range(LABELS):
        test[np.flatnonzero(labels == label)[TEST_FOLD::FOLDS]] = True
    return large[~test], labels[~test], large[test], labels[test]


def _ink() -> tuple[IntArray, Labels]:
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


def enlarge(images: IntArray) -> ByteArray:
    """Return images [n, 3h, 3w] of 0 to 255 from images [n, h, w] of 0 to 16, by linear interpolation."""
    for axis in (1, 2):
        before, at, after = (np.roll(_bordered(images, axis), shift, axis) for shift in (1, 0, -1))
        thirds = np.stack([before + 2 * at, 3 * at, 2 * at + after], axis=axis + 1)
        inner = np.take(thirds, range(1, images.shape[axis] + 1), axis=axis)
        shape = list(images.shape)
        shape[axis] *= 3
        images = inner.reshape(shape)
    full = 9 * MOST_INK  # both directions multiplied by three
    pixels: ByteArray = ((images * 255 + full // 2) // full).astype(np.uint8)
    return pixels


def _bordered(images: IntArray, axis: int) -> IntArray:
    return np.pad(images, [(1, 1) if each == axis else (0, 0) for each in range(3)])


@dataclass(frozen=True)
class Embedded(Source):
    """A data set that a function of flmarket's makes."""

    known: DatasetInfo  # what is known of it
    make: Callable[[], Arrays]  # returns images [n, H, W] of one channel, and labels [n], for training and for tests

    @property
    def info(self) -> DatasetInfo:
        return self.known

    def load(self, root: Path, *, download: bool) -> Dataset:
        arrays = self.make()
        digests = {
            name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in zip(ARRAY_NAMES, arrays, strict=True)
        }
        name = self.known.name
        if digests != DRAWN.get(name, digests):
            raise DatasetError(
                f"data set {name!r}: the images that are drawn here are not the known ones; check NumPy, or the machine"
            )
        return Dataset.of(self.known, arrays, digests, OFFICIAL[name])


_DRAWN = Shape(1, strokes.SIDE, strokes.SIDE)

SOURCES = (
    Embedded(
        DatasetInfo(
            "digits", "handwritten digits, 8 x 8 enlarged (scikit-learn's); the easiest",
            10, Shape(1, SIDE, SIDE), 1_438, 359, 139, "embedded", "CC BY 4.0 (Alpaydin, Kaynak 1998)",
        ),
        digits,
    ),
    Embedded(
        DatasetInfo(
            "strokes", "drawn digits with distortion and noise; about as hard as MNIST",
            10, _DRAWN, 12_000, 2_000, 1_200, "embedded", "MIT (flmarket)",
        ),
        # Drawing takes seconds, so a process that loads these twice, as a notebook does, draws them once.
        cache(partial(strokes.draw, "strokes")),
    ),
    Embedded(
        DatasetInfo(
            "scribbles", "drawn capitals among pieces of others; about as hard as Fashion-MNIST",
            10, _DRAWN, 12_000, 2_000, 1_200, "embedded", "MIT (flmarket)",
        ),
        cache(partial(strokes.draw, "scribbles")),
    ),
)  # fmt: skip

OFFICIAL: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "digits": {
            "train-images": "4215016c0488433707f098475b8387e3d5c29ac4eaf6c27afa62bbd368c37839",
            "train-labels": "704dda749a60b2f59828343b681eb0bf300a9738520946943df3ddfd530c4e41",
            "test-images": "beb8214a2a768f3da98b5a18e7ef5805c79fed113818a9faee12176dbb930ee7",
            "test-labels": "1becdccb6ef79354e94a2aa220bb39468dac9b9cb36da5ee42edff1263ee5ecf",
        },
        "strokes": {
            "train-images": "b3f5a17b26c606f23c1e5cd911c91ad417de8d586092bd61200874e15d2db869",
            "train-labels": "a03e70550c1825d27a04fcacd7bc59a0df988963ec9c03c287810b7cf787cc68",
            "test-images": "d38fdaaf9d7f115e6cd73b970e80fef4eb142dbab2bf6ccebf4657a858929c2c",
            "test-labels": "19efeabbd5fed476d80e2ce2609cdc76c23b9694a1631c6371599ab362810a91",
        },
        "scribbles": {
            "train-images": "d68728733abdf3b45ca3c132270d4522a33ae5c2286ea4f2a54e85f1ac2dab5e",
            "train-labels": "a03e70550c1825d27a04fcacd7bc59a0df988963ec9c03c287810b7cf787cc68",
            "test-images": "2992922313a1274baa05ce07bcf132c649b8bd05e0a5afb007a97a1c002b166a",
            "test-labels": "19efeabbd5fed476d80e2ce2609cdc76c23b9694a1631c6371599ab362810a91",
        },
    }
)
"""SHA-256 of each data set's arrays."""

DRAWN: Mapping[str, Mapping[str, str]] = MappingProxyType({name: OFFICIAL[name] for name in ("strokes", "scribbles")})
"""Those of the data sets that flmarket draws: they are known without drawing, as the same bytes come out everywhere."""
