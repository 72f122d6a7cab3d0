"""Data sets as files in torchvision's layout: downloads and formats. No other module imports torchvision.

torchvision knows the addresses and checks the archives' checksums. As it takes any file that is present for a good one,
a download goes into a temporary folder first, and its files move to their place once all of them are complete. Its own
CIFAR files are pickles; the same images are published as plain records, and those are downloaded here.
"""

import hashlib
import io
import math
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from fl.arrays import AnyArray
from flmarket.core.errors import InputError
from flmarket.core.files import replacing_text
from flmarket.core.installation import require_extra

RECEIPT = "flmarket.sha256"  # holds the SHA-256 of the downloaded files next to it, in the format of ``sha256sum``

MISSING_OPERATOR = "operator torchvision::nms does not exist"


class DownloadError(Exception):
    """A download failed; the message says why."""


class Files(ABC):
    """A data set as files, which are parsed without running code of theirs."""

    files: tuple[str, ...]  # their names

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Folder of the files, relative to the data root."""

    @abstractmethod
    def fetch(self, sets: Any, root: Path) -> None:
        """Download the files into ``root / folder``, through ``torchvision.datasets``."""

    @abstractmethod
    def parse(self, file: str, data: bytes) -> Iterable[AnyArray]:
        """Return the arrays of a file: images [n, ...], labels [n] from 0, or both; what is wrong raises anything."""


@dataclass(frozen=True)
class IdxFiles(Files):
    """MNIST and its relatives: an array in each file, after two zeros, 8 for bytes, and its dimensions."""

    source: str  # torchvision's class, which also names the folder
    files: tuple[str, str, str, str]  # training images, training labels, test images, test labels
    split: str | None = None  # EMNIST's, which torchvision's class is asked for
    first_label: int = 0  # the lowest label in the files

    @property
    def folder(self) -> Path:
        return Path(self.source) / "raw"

    def fetch(self, sets: Any, root: Path) -> None:
        named = {} if self.split is None else {"split": self.split}
        getattr(sets, self.source)(root, download=True, train=False, **named)

    def parse(self, file: str, data: bytes) -> Iterable[AnyArray]:
        kind, dimensions = ("labels", 1) if "labels" in file else ("images", 3)
        start, header = bytes([0, 0, 8, dimensions]), 4 + 4 * dimensions
        if data[:4] != start:
            raise ValueError(f"it does not hold {kind}: it starts with 0x{data[:4].hex()}, not with 0x{start.hex()}")
        shape = np.frombuffer(data, ">u4", dimensions, 4)
        if len(data) != (size := header + math.prod(shape.tolist())):
            raise ValueError(f"it has {len(data):,} bytes, not the {size:,} that its first {header} announce")
        array = np.frombuffer(data, np.uint8, offset=header).reshape(shape)
        if kind == "labels":
            return (array.astype(np.int16) - self.first_label,)
        # EMNIST's rows and columns are exchanged, as in the NIST files that it was made of.
        return (array if self.split is None else array.transpose(0, 2, 1),)


@dataclass(frozen=True)
class RecordFiles(Files):
    """CIFAR as files of records: a label, then the bytes of an image."""

    source: str  # torchvision's class, which knows the address of the other archive
    name: str  # the folder in the archive, and here
    files: tuple[str, ...]  # training files, then the test file
    md5: str  # the archive's checksum, as its page gives it

    @property
    def folder(self) -> Path:
        return Path(self.name)

    def fetch(self, sets: Any, root: Path) -> None:
        url = getattr(sets, self.source).url.replace("-python", "-binary")
        sets.utils.download_and_extract_archive(url, root, md5=self.md5)

    def parse(self, file: str, data: bytes) -> Iterable[AnyArray]:
        size = 1 + 3 * 32 * 32
        if not data or len(data) % size:
            raise ValueError(f"it has {len(data):,} bytes; a label and its image have {size:,}")
        table = np.frombuffer(data, np.uint8).reshape(-1, size)
        return table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0]


@dataclass(frozen=True)
class MatlabFiles(Files):
    """SVHN: one MATLAB file for each split, which torchvision's class has the addresses and checksums of."""

    files: tuple[str, ...] = ("train_32x32.mat", "test_32x32.mat")

    @property
    def folder(self) -> Path:
        return Path("SVHN")

    def fetch(self, sets: Any, root: Path) -> None:
        for split in ("train", "test"):
            url, file, md5 = sets.SVHN.split_list[split]
            sets.utils.download_url(url, root / self.folder, file, md5)

    def parse(self, file: str, data: bytes) -> Iterable[AnyArray]:
        from scipy.io import loadmat  # takes its time to import

        arrays = loadmat(io.BytesIO(data), variable_names=("X", "y"))
        return arrays["X"].transpose(3, 2, 0, 1), arrays["y"].ravel() % 10  # the digit 0 has the label 10


def _idx(source: str, split: str | None = None, first_label: int = 0) -> IdxFiles:
    train, test = ("train", "t10k") if split is None else (f"emnist-{split}-train", f"emnist-{split}-test")
    files = (
        f"{train}-images-idx3-ubyte",
        f"{train}-labels-idx1-ubyte",
        f"{test}-images-idx3-ubyte",
        f"{test}-labels-idx1-ubyte",
    )
    return IdxFiles(source, files, split, first_label)


FILES: Mapping[str, Files] = MappingProxyType(
    {
        "mnist": _idx("MNIST"),
        "fashion-mnist": _idx("FashionMNIST"),
        "kmnist": _idx("KMNIST"),
        "emnist-letters": _idx("EMNIST", "letters", first_label=1),
        "emnist-digits": _idx("EMNIST", "digits"),
        "emnist-balanced": _idx("EMNIST", "balanced"),
        "cifar-10": RecordFiles(
            "CIFAR10",
            "cifar-10-batches-bin",
            (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"),
            md5="c32a1d4ab5d03f1284b67883e8d87530",
        ),
        "svhn": MatlabFiles(),
    }
)
"""All data sets that are downloaded, by name."""


def find(folder: Path, name: str) -> Path | None:
    """Return the file of that name, plain or gzip-compressed, or None where there is neither."""
    for path in (folder / name, folder / f"{name}.gz"):
        try:
            path.stat()
        except OSError:  # also a folder that may not be looked into
            continue
        return path
    return None


def download(raw: Files, root: Path) -> None:
    """Download a data set's files into ``root``; files that are there already stay as they are."""
    from http.client import HTTPException  # takes its time to import

    try:
        sets = torchvision_datasets()
        root.mkdir(parents=True, exist_ok=True)
        # On the same file system, so that a file moves in one step.
        with TemporaryDirectory(prefix=".download-", dir=root) as temporary:
            raw.fetch(sets, Path(temporary))
            _move_in(Path(temporary) / raw.folder, root / raw.folder)
    except (
        OSError,
        RuntimeError,
        ImportError,
        EOFError,
        HTTPException,
        InputError,
        tarfile.TarError,
        zlib.error,
    ) as error:
        raise DownloadError(" ".join(str(error).split()) or type(error).__name__) from error


def _move_in(source: Path, target: Path) -> None:
    """Move complete files to where they belong, after the receipt that says what they should be.

    One archive may hold the files of several data sets.
    """
    target.mkdir(parents=True, exist_ok=True)
    known = {name for files in FILES.values() for name in files.files}
    complete = [path for path in sorted(source.iterdir()) if path.name in known]
    digests = receipt(target) | {path.name: _sha256(path) for path in complete}
    with replacing_text(target / RECEIPT) as file:
        file.writelines(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    for path in complete:
        if find(target, path.name) is None:
            path.replace(target / path.name)


def receipt(folder: Path) -> dict[str, str]:
    """Return the SHA-256 by name of the files that were downloaded into ``folder``; empty where there is no receipt."""
    try:
        lines = (folder / RECEIPT).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeError):
        return {}
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def torchvision_datasets() -> ModuleType:
    """Import ``torchvision.datasets``.

    The wheel of torchvision 0.28.0 that is built for CUDA fails to import with a CPU-only torch, because its compiled
    operators do not load. Nothing here uses them, so when the import fails with just that error, the two operators it
    asks for are declared and it is imported again.
    """
    require_extra("torch", "a download", "torchvision", "torchvision")
    try:
        return import_module("torchvision.datasets")
    except RuntimeError as error:
        if MISSING_OPERATOR not in str(error):
            raise
    _declare_missing_operators()
    return import_module("torchvision.datasets")


@cache  # declaring twice is an error, and what is declared vanishes with the library object
def _declare_missing_operators() -> object:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in ("nms", "qnms"):
        library.define(  # type: ignore[no-untyped-call]
            f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        )
    return library
