"""Data sets by name: what there is, and loading it as arrays.

Embedded data sets are made on the spot and need no network. The others are files in torchvision's layout under
``data_root()``, downloaded when they are not there, checked whenever they are read, and never written after that.

A data set is *official* when the SHA-256 of all its files (or of its generated arrays) is known to be right: recorded
in ``fl.digests``, or in the receipt that was written when flmarket downloaded them and torchvision had checked the
archive. Anything else loads just as well, but is marked unofficial: nothing proves that it is what its name says.
"""

import difflib
import hashlib
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from fl import embedded, idx, strokes, vision
from fl.digests import OFFICIAL
from fl.errors import InputError

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int64]
Arrays = tuple[Pixels, Labels, Pixels, Labels]
"""Training images [n, 28, 28], training labels [n], test images [m, 28, 28], test labels [m]."""

VARIABLE = "FLMARKET_DATA"
ARRAY_NAMES = ("train-images", "train-labels", "test-images", "test-labels")
_STATISTICS_CHUNK = 30  # images, so that the sum of their squared pixels fits 32 bits


class DatasetError(InputError):
    """A data set is missing or corrupt; the message names the file or folder, what is wrong, and what to do."""


class UnknownDatasetError(InputError):
    """There is no data set of that name."""


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set without loading it.

    Attributes:
        name: by which scenarios call it.
        description: what it shows, and how hard it is.
        labels: how many there are (L).
        train_size, test_size: images in each split.
        rarest_label: training images of the label that has fewest. A cautious lower bound for ``emnist-byclass`` and
            ``emnist-bymerge``, the two that are not balanced by construction.
        source: ``embedded`` needs no network; ``download`` is fetched once.
        licence: of the images.
    """

    name: str
    description: str
    labels: int
    train_size: int
    test_size: int
    rarest_label: int
    source: Literal["embedded", "download"]
    licence: str


_EMNIST_LICENCE = "public domain (NIST Special Database 19; Cohen et al. 2017)"

DATASETS: Mapping[str, DatasetInfo] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            DatasetInfo(
                "digits",
                "handwritten digits, 8 x 8 enlarged (scikit-learn's); the easiest",
                10, 1_438, 359, 139, "embedded", "CC BY 4.0 (Alpaydin, Kaynak 1998)",
            ),
            DatasetInfo(
                "strokes",
                "drawn digits with distortion and noise; about as hard as MNIST",
                10, 12_000, 2_000, 1_200, "embedded", "MIT (flmarket)",
            ),
            DatasetInfo(
                "scribbles",
                "drawn capitals among pieces of others; about as hard as Fashion-MNIST",
                10, 12_000, 2_000, 1_200, "embedded", "MIT (flmarket)",
            ),
            DatasetInfo(
                "mnist", "handwritten digits",
                10, 60_000, 10_000, 5_421, "download", "CC BY-SA 3.0 (LeCun, Cortes, Burges)",
            ),
            DatasetInfo(
                "fashion-mnist", "clothes; harder than MNIST",
                10, 60_000, 10_000, 6_000, "download", "MIT (Zalando)",
            ),
            DatasetInfo(
                "emnist-digits", "handwritten digits, four times as many",
                10, 240_000, 40_000, 24_000, "download", _EMNIST_LICENCE,
            ),
            DatasetInfo(
                "emnist-letters", "handwritten letters, capital and small as one",
                26, 124_800, 20_800, 4_800, "download", _EMNIST_LICENCE,
            ),
            DatasetInfo(
                "emnist-balanced", "handwritten digits and letters, look-alike cases merged",
                47, 112_800, 18_800, 2_400, "download", _EMNIST_LICENCE,
            ),
            DatasetInfo(
                "emnist-byclass", "handwritten digits, capital and small letters; unbalanced",
                62, 697_932, 116_323, 1_000, "download", _EMNIST_LICENCE,
            ),
            DatasetInfo(
                "emnist-bymerge", "the same with look-alike cases merged; unbalanced",
                47, 697_932, 116_323, 1_000, "download", _EMNIST_LICENCE,
            ),
            DatasetInfo(
                "emnist-mnist", "handwritten digits in MNIST's sizes, balanced",
                10, 60_000, 10_000, 6_000, "download", _EMNIST_LICENCE,
            ),
            DatasetInfo(
                "kmnist", "handwritten Hiragana; harder than MNIST",
                10, 60_000, 10_000, 6_000, "download", "CC BY-SA 4.0 (CODH)",
            ),
            DatasetInfo(
                "qmnist", "MNIST rebuilt, with 60,000 test images",
                10, 60_000, 60_000, 5_421, "download", "BSD (Yadav, Bottou; Facebook)",
            ),
        )
    }
)  # fmt: skip

_EMBEDDED: Mapping[str, Callable[[], Arrays]] = MappingProxyType(
    {
        "digits": embedded.digits,
        "strokes": partial(strokes.draw, "strokes"),
        "scribbles": partial(strokes.draw, "scribbles"),
    }
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A loaded data set. All arrays are read-only.

    Attributes:
        info: with the sizes of what was loaded, which for an unofficial copy may differ from the official ones.
        train_images, train_labels: [n, 28, 28] and [n]; labels count from 0.
        test_images, test_labels: [m, 28, 28] and [m].
        digests: SHA-256 of each uncompressed file, or of each generated array.
        official: all digests are known to be right.
    """

    info: DatasetInfo
    train_images: Pixels
    train_labels: Labels
    test_images: Pixels
    test_labels: Labels
    digests: Mapping[str, str]
    official: bool

    @cached_property
    def by_label(self) -> tuple[Indices, ...]:
        """For each label, the indices of its images in the training split, ascending."""
        pools = tuple(np.flatnonzero(self.train_labels == label) for label in range(self.info.labels))
        for pool in pools:
            pool.setflags(write=False)
        return pools

    @cached_property
    def _mean_and_deviation(self) -> tuple[float, float]:
        """Mean and standard deviation of the training split's pixels, from exact sums of integers."""
        total = squares = 0
        for start in range(0, len(self.train_images), _STATISTICS_CHUNK):
            pixels = self.train_images[start : start + _STATISTICS_CHUNK].ravel().astype(np.int32)
            total += int(pixels.sum())
            squares += int(pixels @ pixels)
        count = self.train_images.size
        return total / count, math.sqrt((count * squares - total * total) / count**2)

    @property
    def scale(self) -> float:
        """``pixel * scale + offset`` has mean 0 and standard deviation 1 over the training split."""
        return 1.0 / self._mean_and_deviation[1]

    @property
    def offset(self) -> float:
        """See ``scale``."""
        mean, deviation = self._mean_and_deviation
        return -mean / deviation


def names() -> list[str]:
    """Return the names of all data sets, embedded ones first."""
    return list(DATASETS)


def info(name: str) -> DatasetInfo:
    """Return what is known of a data set.

    Raises:
        UnknownDatasetError: there is none of that name; says which is nearest.
    """
    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(DATASETS)}"
        raise UnknownDatasetError(f"there is no data set {name!r}; {hint}")
    return DATASETS[name]


def data_root() -> Path:
    """Return the folder of downloaded data sets: ``$FLMARKET_DATA``, else ``flmarket`` in the user's cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or "")
        if not caches.is_absolute():  # which the XDG specification tells us to ignore
            caches = Path.home() / ".cache"
    return caches / "flmarket"


def load(name: str, root: Path | None = None, *, download: bool = True) -> Dataset:
    """Load a data set, downloading it first if its files are not there.

    Args:
        name: of the data set.
        root: folder of downloaded data sets; ``data_root()`` by default.
        download: whether missing files may be downloaded.

    Raises:
        UnknownDatasetError: there is none of that name.
        DatasetError: files are corrupt, or missing and can't be downloaded; says which, and what to do.
    """
    found = info(name)
    if name in _EMBEDDED:
        arrays = _EMBEDDED[name]()
        digests = {
            key: hashlib.sha256(array.tobytes()).hexdigest() for key, array in zip(ARRAY_NAMES, arrays, strict=True)
        }
        known = OFFICIAL[name]
    else:
        root = data_root() if root is None else root
        raw = vision.RAW_FILES[name]
        arrays, digests = _read(name, raw, _locate(name, raw, root, download=download))
        known = OFFICIAL.get(name) or vision.receipt(root / raw.folder)
    for array in arrays:
        array.setflags(write=False)
    counts = np.bincount(arrays[1], minlength=found.labels)
    found = replace(found, train_size=len(arrays[1]), test_size=len(arrays[3]), rarest_label=int(counts.min()))
    official = all(known.get(key) == digest for key, digest in digests.items())
    return Dataset(found, *arrays, digests=MappingProxyType(digests), official=official)


def _locate(name: str, raw: vision.RawFiles, root: Path, *, download: bool) -> list[Path]:
    """Return the paths of a data set's four files, after downloading what is missing."""
    folder = root / raw.folder
    missing = [file for file in raw.files if vision.find(folder, file) is None]
    reason = "downloads are switched off"
    if missing and download:
        try:
            vision.download(raw, root)
        except vision.DownloadError as error:
            reason = f"they could not be downloaded: {error}"
        missing = [file for file in raw.files if vision.find(folder, file) is None]
    if missing:
        raise DatasetError(
            f"data set {name!r}: {folder} lacks {', '.join(missing)}; {reason}. Run again with a network connection, "
            "put the files there by hand (as they are or as .gz), or set "
            f"{VARIABLE} to the folder that holds {raw.folder}"
        )
    return [path for file in raw.files if (path := vision.find(folder, file)) is not None]


def _read(name: str, raw: vision.RawFiles, paths: list[Path]) -> tuple[Arrays, dict[str, str]]:
    """Read and check a data set's four files; return the arrays and the SHA-256 of each file."""
    arrays: list[npt.NDArray[np.uint8]] = []
    digests: dict[str, str] = {}
    labels = info(name).labels
    for file, path in zip(raw.files, paths, strict=True):
        try:
            if "-images-" in file:
                array, digests[file] = idx.read_images(path)
                if raw.transposed:
                    array = np.ascontiguousarray(array.transpose(0, 2, 1))
            else:
                array, digests[file] = idx.read_labels(path, len(arrays[-1]), labels, raw.first_label)
        except idx.IdxError as error:
            raise DatasetError(
                f"data set {name!r}: {path}: {error}. Delete the file and run again to download it, or put a good one "
                "there by hand"
            ) from error
        arrays.append(array)
    return (arrays[0], arrays[1], arrays[2], arrays[3]), digests
