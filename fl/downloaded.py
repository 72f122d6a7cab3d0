"""Data sets that are files in torchvision's layout: downloaded when they are missing, checked whenever they are read.

They are never written after the download. A copy that is there already may hold other images than the official one: it
loads just as well, but is marked unofficial.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fl import idx, matlab, records, vision
from fl.arrays import AnyArray, Labels, Pixels
from fl.dataset import Arrays, Dataset, DatasetError, DatasetInfo, FileError, Shape, Source
from fl.digests import OFFICIAL
from fl.home import expanded, home

VARIABLE = "FLMARKET_DATA"

_Part = TypeVar("_Part")
_Reader = Callable[..., tuple[Pixels, Labels, str]]


class AbsentError(DatasetError):
    """A data set's files are not here, and cannot or must not be downloaded."""


@dataclass(frozen=True)
class Downloaded(Source):
    """A data set in files.

    Attributes:
        known: what is known of the official one.
        raw: its files.
    """

    known: DatasetInfo
    raw: vision.Files

    @property
    def info(self) -> DatasetInfo:
        """See ``Source.info``."""
        return self.known

    def present(self, root: Path) -> bool:
        """See ``Source.present``."""
        return not self._missing(root)

    def load(self, root: Path, *, download: bool) -> Dataset:
        """See ``Source.load``."""
        arrays, digests = self._read(self._locate(root, download=download))
        known = OFFICIAL.get(self.known.name) or vision.receipt(root / self.raw.folder)
        return Dataset.of(self.known, arrays, digests, known)

    def _missing(self, root: Path) -> list[str]:
        """Return the names of the files that are not there."""
        return [file for file in self.raw.files if vision.find(root / self.raw.folder, file) is None]

    def _locate(self, root: Path, *, download: bool) -> list[Path]:
        """Return the paths of the files, after downloading what is missing."""
        folder = root / self.raw.folder
        missing = self._missing(root)
        reason = "downloads are switched off"
        if missing and download:
            try:
                vision.download(self.raw, root)
            except vision.DownloadError as error:
                reason = f"they could not be downloaded: {error}"
            missing = self._missing(root)
        if missing:
            raise AbsentError(
                f"data set {self.known.name!r}: {folder} lacks {', '.join(missing)}; {reason}. Run again with a "
                "network connection, put the files there by hand (as they are or as .gz), or set "
                f"{VARIABLE} to the folder that holds {self.raw.folder}"
            )
        return [path for file in self.raw.files if (path := vision.find(folder, file)) is not None]

    def _read(self, paths: list[Path]) -> tuple[Arrays, dict[str, str]]:
        """Read and check the files; return the arrays and the SHA-256 of each file."""
        match self.raw:
            case vision.RawFiles():
                return self._read_idx(self.raw, paths)
            case vision.RecordFiles(labels_before=before):
                read: _Reader = partial(records.read, labels_before=before)
            case _:
                read = matlab.read
        parts = [self._part(path, read, self.known.shape, self.known.labels) for path in paths]
        digests = {file: digest for file, (_, _, digest) in zip(self.raw.files, parts, strict=True)}
        *train, (test_images, test_labels, _) = parts  # CIFAR-10 has its training images in five files
        images, labels, _ = train[0] if len(train) == 1 else map(_joined, zip(*train, strict=True))
        return (images, labels, test_images, test_labels), digests

    def _read_idx(self, raw: vision.RawFiles, paths: list[Path]) -> tuple[Arrays, dict[str, str]]:
        """Read images and labels from files of their own."""
        arrays: list[Pixels] = []
        digests: dict[str, str] = {}
        _, height, width = self.known.shape
        for file, path in zip(raw.files, paths, strict=True):
            if "-images-" in file:
                array, digests[file] = self._part(path, idx.read_images, height, width)
                if raw.transposed:
                    array = np.ascontiguousarray(array.transpose(0, 2, 1))
            else:
                labels, first = self.known.labels, raw.first_label
                array, digests[file] = self._part(path, idx.read_labels, len(arrays[-1]), labels, first)
            arrays.append(array)
        return (arrays[0], arrays[1], arrays[2], arrays[3]), digests

    def _part(self, path: Path, read: Callable[..., _Part], *expected: Any) -> _Part:
        """Read one file.

        Raises:
            DatasetError: it is damaged; says what to do.
        """
        try:
            return read(path, *expected)
        except FileError as error:
            raise DatasetError(
                f"data set {self.known.name!r}: {path}: {error}. Delete the file and run again to download it, or "
                "put a good one there by hand"
            ) from error


def _joined(parts: Sequence[AnyArray | str]) -> Any:
    """Join arrays; of digests, nothing is needed."""
    return "" if isinstance(parts[0], str) else np.concatenate(parts)


def data_root() -> Path:
    """Return the folder of downloaded data sets: ``$FLMARKET_DATA``, else ``flmarket`` in the user's cache folder.

    Raises:
        InputError: it is in a home folder that is not known.
    """
    if chosen := os.environ.get(VARIABLE):
        return expanded(chosen)
    if sys.platform == "darwin":
        caches = home() / "Library" / "Caches"
    elif sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or home() / "AppData" / "Local")
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or "")
        if not caches.is_absolute():  # which the XDG specification tells us to ignore
            caches = home() / ".cache"
    return caches / "flmarket"


_SHAPE = Shape(1, 28, 28)
"""MNIST's, which all of its relatives have kept."""

_COLOUR = Shape(3, 32, 32)
"""CIFAR's, and that of the cropped digits of SVHN."""

_EMNIST_LICENCE = "public domain (NIST Special Database 19; Cohen et al. 2017)"

SOURCES = tuple(
    Downloaded(
        DatasetInfo(
            name, description, labels, _SHAPE if name in vision.RAW_FILES else _COLOUR, *sizes, "download", licence
        ),
        vision.FILES[name],
    )
    for name, description, labels, sizes, licence in (
        (
            "mnist", "handwritten digits",
            10, (60_000, 10_000, 5_421), "CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        ),
        (
            "fashion-mnist", "clothes; harder than MNIST",
            10, (60_000, 10_000, 6_000), "MIT (Zalando)",
        ),
        (
            "emnist-digits", "handwritten digits, four times as many",
            10, (240_000, 40_000, 24_000), _EMNIST_LICENCE,
        ),
        (
            "emnist-letters", "handwritten letters, capital and small as one",
            26, (124_800, 20_800, 4_800), _EMNIST_LICENCE,
        ),
        (
            "emnist-balanced", "handwritten digits and letters, look-alike cases merged",
            47, (112_800, 18_800, 2_400), _EMNIST_LICENCE,
        ),
        (
            "emnist-byclass", "handwritten digits, capital and small letters; unbalanced",
            62, (697_932, 116_323, 1_000), _EMNIST_LICENCE,
        ),
        (
            "emnist-bymerge", "the same with look-alike cases merged; unbalanced",
            47, (697_932, 116_323, 1_000), _EMNIST_LICENCE,
        ),
        (
            "emnist-mnist", "handwritten digits in MNIST's sizes, balanced",
            10, (60_000, 10_000, 6_000), _EMNIST_LICENCE,
        ),
        (
            "kmnist", "handwritten Hiragana; harder than MNIST",
            10, (60_000, 10_000, 6_000), "CC BY-SA 4.0 (CODH)",
        ),
        (
            "qmnist", "MNIST rebuilt, with 60,000 test images",
            10, (60_000, 60_000, 5_421), "BSD (Yadav, Bottou; Facebook)",
        ),
        (
            "cifar-10", "photographs of animals and vehicles, in colour; much harder than MNIST",
            10, (50_000, 10_000, 5_000), "none stated (Krizhevsky 2009)",
        ),
        (
            "cifar-100", "the same kind of photographs of 100 things",
            100, (50_000, 10_000, 500), "none stated (Krizhevsky 2009)",
        ),
        (
            "svhn", "house numbers in the street, in colour; unbalanced",
            10, (73_257, 26_032, 4_659), "non-commercial use (Netzer et al. 2011)",
        ),
    )
)  # fmt: skip
