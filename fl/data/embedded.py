"""Data sets that come with flmarket: made on the spot, without a network."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from fl.data import digits, strokes
from fl.data.dataset import ARRAY_NAMES, Arrays, Dataset, DatasetInfo, Shape, Source
from fl.data.digests import OFFICIAL


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
        return Dataset.of(self.known, arrays, digests, OFFICIAL[self.known.name])


_DRAWN = Shape(1, strokes.SIDE, strokes.SIDE)

SOURCES = (
    Embedded(
        DatasetInfo(
            "digits", "handwritten digits, 8 x 8 enlarged (scikit-learn's); the easiest",
            10, Shape(1, digits.SIDE, digits.SIDE), 1_438, 359, 139, "embedded", "CC BY 4.0 (Alpaydin, Kaynak 1998)",
        ),
        digits.digits,
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
