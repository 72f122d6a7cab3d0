"""Data sets that come with flmarket: made on the spot, without a network."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

from fl.data import digits, strokes
from fl.data.dataset import ARRAY_NAMES, Arrays, Dataset, DatasetError, DatasetInfo, Shape, Source


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
