"""Data sets that are files in torchvision's layout: downloaded when they are missing, checked whenever they are read.

They are never written after the download. A copy that is there already may hold other images than the official one: it
loads just as well, but is marked unofficial.
"""

import gzip
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from fl.arrays import AnyArray, Labels, Pixels
from fl.data import torchvision_files as vision
from fl.data.dataset import Arrays, Dataset, DatasetError, DatasetInfo, Shape, Source
from flmarket.core.files import expanded, home

VARIABLE = "FLMARKET_DATA"


class AbsentError(DatasetError):
    """A data set's files are not here, and cannot or must not be downloaded."""


@dataclass(frozen=True)
class Downloaded(Source):
    """A data set in files."""

    known: DatasetInfo  # what is known of the official one
    raw: vision.Files  # its files

    @property
    def info(self) -> DatasetInfo:
        return self.known

    def present(self, root: Path) -> bool:
        return not self._missing(root)

    def load(self, root: Path, *, download: bool) -> Dataset:
        arrays, digests = self._read(self._locate(root, download=download))
        known = OFFICIAL.get(self.known.name) or vision.receipt(root / self.raw.folder)
        return Dataset.of(self.known, arrays, digests, known)

    def _missing(self, root: Path) -> list[str]:
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
        digests: dict[str, str] = {}
        images: list[Pixels] = []  # those of the test last; CIFAR-10 has its training images in five files
        labels: list[Labels] = []
        for file, path in zip(self.raw.files, paths, strict=True):
            try:
                data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                digests[file] = hashlib.sha256(data).hexdigest()
                for array in self.raw.parse(file, data):
                    (labels if array.ndim == 1 else images).append(self._checked(array))
                if len(labels) == len(images) and len(labels[-1]) != len(images[-1]):
                    raise ValueError(f"it holds {len(labels[-1]):,} labels for {len(images[-1]):,} images")  # noqa: TRY301
            except Exception as error:  # of damaged and foreign files: errors of all kinds
                raise DatasetError(
                    f"data set {self.known.name!r}: {path}: cannot be read as it should be: {error}. Delete the file "
                    "and run again to download it, or put a good one there by hand"
                ) from error
        return (_joined(images[:-1]), _joined(labels[:-1]), images[-1], labels[-1]), digests

    def _checked(self, array: AnyArray) -> AnyArray:
        """Return images or labels as contiguous bytes; raise ValueError unless they can be this data set's."""
        known, lowest, highest = self.known, int(array.min()), int(array.max())
        if array.ndim == 1 and not 0 <= lowest <= highest < known.labels:
            raise ValueError(f"it holds labels from {lowest} to {highest}; there are {known.labels} from 0 on")
        if array.ndim > 1 and (array.shape[-2:] != known.shape[1:] or lowest == highest):
            blank = "are blank" if lowest == highest else f"have the shape {list(array.shape[1:])}"
            raise ValueError(f"its images {blank}; they must be {known.shape}")
        return np.ascontiguousarray(array, np.uint8)


def _joined(parts: Sequence[AnyArray]) -> AnyArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def data_root() -> Path:
    """Return the folder of downloaded data sets: ``$FLMARKET_DATA``, else ``flmarket`` in the user's cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return expanded(chosen)
    if sys.platform == "darwin":
        caches = home() / "Library" / "Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or "")
        if not caches.is_absolute():  # which the XDG specification tells us to ignore
            caches = home() / ".cache"
    return caches / "flmarket"


_SHAPE = Shape(1, 28, 28)  # MNIST's, which all of its relatives have kept

_COLOUR = Shape(3, 32, 32)  # CIFAR's, and that of the cropped digits of SVHN

_EMNIST_LICENCE = "public domain (NIST Special Database 19; Cohen et al. 2017)"

SOURCES = tuple(
    Downloaded(
        DatasetInfo(name, description, labels, shape, *sizes, "download", licence),
        vision.FILES[name],
    )
    for name, description, labels, shape, sizes, licence in (
        (
            "mnist", "handwritten digits",
            10, _SHAPE, (60_000, 10_000, 5_421), "CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        ),
        (
            "fashion-mnist", "clothes; harder than MNIST",
            10, _SHAPE, (60_000, 10_000, 6_000), "MIT (Zalando)",
        ),
        (
            "emnist-digits", "handwritten digits, four times as many",
            10, _SHAPE, (240_000, 40_000, 24_000), _EMNIST_LICENCE,
        ),
        (
            "emnist-letters", "handwritten letters, capital and small as one",
            26, _SHAPE, (124_800, 20_800, 4_800), _EMNIST_LICENCE,
        ),
        (
            "emnist-balanced", "handwritten digits and letters, look-alike cases merged",
            47, _SHAPE, (112_800, 18_800, 2_400), _EMNIST_LICENCE,
        ),
        (
            "kmnist", "handwritten Hiragana; harder than MNIST",
            10, _SHAPE, (60_000, 10_000, 6_000), "CC BY-SA 4.0 (CODH)",
        ),
        (
            "cifar-10", "photographs of animals and vehicles, in colour; much harder than MNIST",
            10, _COLOUR, (50_000, 10_000, 5_000), "none stated (Krizhevsky 2009)",
        ),
        (
            "svhn", "house numbers in the street, in colour; unbalanced",
            10, _COLOUR, (73_257, 26_032, 4_659), "non-commercial use (Netzer et al. 2011)",
        ),
    )
)  # fmt: skip

OFFICIAL: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "mnist": {
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
        "fashion-mnist": {
            "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    }
)
"""SHA-256 of the uncompressed files, computed from archives whose MD5 is the one in torchvision 0.28.

For the other data sets, the receipt that ``fl.data.torchvision_files`` writes next to them records what the archives
contained.
"""
