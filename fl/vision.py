"""Downloads through torchvision: which files a data set consists of, and fetching them. No other module imports it.

torchvision knows the addresses and checks the archives' checksums; ``fl.readers`` reads the files. As torchvision takes
any file that is present for a good one, a download goes into a temporary folder first, and its files move to their
place once all of them are complete. An interrupted download leaves nothing that could be mistaken for data.

torchvision's own CIFAR files are Python pickles, which its class unpickles. The same images are published as plain
records beside them; those are what is downloaded here, with the checksum that the data set's page gives.
"""

import hashlib
import shutil
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar

import numpy as np

from fl import readers
from fl.arrays import AnyArray
from fl.files import replacing

RECEIPT = "flmarket.sha256"  # the file beside downloaded ones that holds their SHA-256, in the format of ``sha256sum``

MISSING_OPERATOR = "operator torchvision::nms does not exist"


class DownloadError(Exception):
    """A download failed; the message says why."""


class Files(ABC):
    """A data set as files."""

    files: tuple[str, ...]  # their names
    # match these names, and those of more files of the same kind that a download may bring
    patterns: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Folder of the files, relative to the data root."""

    @abstractmethod
    def fetch(self, sets: Any, root: Path) -> None:
        """Download the files into ``root / folder``, through ``torchvision.datasets``."""

    @abstractmethod
    def parse(self, data: bytes) -> Iterable[AnyArray]:
        """Return the arrays of a file: images [n, ...], labels [n] from 0, or both; what is wrong raises anything."""


@dataclass(frozen=True)
class RawFiles(Files):
    """A data set as IDX files in torchvision's layout."""

    source: str  # torchvision's class, which also names the folder
    files: tuple[str, str, str, str]  # training images, training labels, test images, test labels
    split: str | None = None  # EMNIST's, which torchvision's class is asked for
    first_label: int = 0  # the lowest label in the files
    # images are stored with rows and columns exchanged, as in the NIST files that EMNIST was made of
    transposed: bool = False
    patterns: ClassVar[tuple[str, ...]] = ("*-ubyte",)

    @property
    def folder(self) -> Path:
        return Path(self.source) / "raw"

    def fetch(self, sets: Any, root: Path) -> None:
        named = {} if self.split is None else {"split": self.split}
        getattr(sets, self.source)(root, download=True, train=False, **named)

    def parse(self, data: bytes) -> Iterable[AnyArray]:
        array = readers.idx(data)
        if array.ndim == 1:
            return (array.astype(np.int16) - self.first_label,)
        return (array.transpose(0, 2, 1) if self.transposed else array,)


@dataclass(frozen=True)
class RecordFiles(Files):
    """CIFAR as files of records, in the layout of its archive."""

    source: str  # torchvision's class, which knows the address of the other archive
    name: str  # the folder in the archive, and here
    files: tuple[str, ...]  # training files, then the test file
    md5: str  # the archive's checksum, as its page gives it
    patterns: ClassVar[tuple[str, ...]] = ("*.bin",)

    @property
    def folder(self) -> Path:
        return Path(self.name)

    def fetch(self, sets: Any, root: Path) -> None:
        url = getattr(sets, self.source).url.replace("-python", "-binary")
        archive = url.rpartition("/")[2]
        sets.utils.download_url(url, root, archive, self.md5)
        (root / self.folder).mkdir()
        with tarfile.open(root / archive) as members:
            for file in self.files:
                with suppress(KeyError):  # what is missing is reported when it is looked for
                    content = members.extractfile(f"{self.name}/{file}")
                    if content is not None:
                        with content, (root / self.folder / file).open("wb") as target:
                            shutil.copyfileobj(content, target)

    def parse(self, data: bytes) -> Iterable[AnyArray]:
        return readers.records(data)


@dataclass(frozen=True)
class MatlabFiles(Files):
    """SVHN: one MATLAB file for each split, which torchvision's class has the addresses and checksums of."""

    files: tuple[str, ...] = ("train_32x32.mat", "test_32x32.mat")
    patterns: ClassVar[tuple[str, ...]] = ("*.mat",)

    @property
    def folder(self) -> Path:
        return Path("SVHN")

    def fetch(self, sets: Any, root: Path) -> None:
        for split in ("train", "test"):
            url, file, md5 = sets.SVHN.split_list[split]
            sets.utils.download_url(url, root / self.folder, file, md5)

    def parse(self, data: bytes) -> Iterable[AnyArray]:
        return readers.matlab(data)


def _mnist_like(source: str) -> RawFiles:
    return RawFiles(
        source,
        (
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
        ),
    )


def _emnist(split: str, first_label: int = 0) -> RawFiles:
    return RawFiles(
        "EMNIST",
        (
            f"emnist-{split}-train-images-idx3-ubyte",
            f"emnist-{split}-train-labels-idx1-ubyte",
            f"emnist-{split}-test-images-idx3-ubyte",
            f"emnist-{split}-test-labels-idx1-ubyte",
        ),
        split=split,
        first_label=first_label,
        transposed=True,
    )


FILES: Mapping[str, Files] = MappingProxyType(
    {
        "mnist": _mnist_like("MNIST"),
        "fashion-mnist": _mnist_like("FashionMNIST"),
        "kmnist": _mnist_like("KMNIST"),
        "emnist-letters": _emnist("letters", first_label=1),
        "emnist-digits": _emnist("digits"),
        "emnist-balanced": _emnist("balanced"),
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
    try:
        sets = torchvision_datasets()
        root.mkdir(parents=True, exist_ok=True)
        # On the same file system, so that a file moves in one step.
        with TemporaryDirectory(prefix=".download-", dir=root) as temporary:
            raw.fetch(sets, Path(temporary))
            _move_in(Path(temporary) / raw.folder, root / raw.folder, raw.patterns)
    except (OSError, RuntimeError, ImportError, EOFError, HTTPException, tarfile.TarError, zlib.error) as error:
        raise DownloadError(" ".join(str(error).split()) or type(error).__name__) from error


def _move_in(source: Path, target: Path, patterns: tuple[str, ...]) -> None:
    """Move complete files to where they belong, after the receipt that says what they should be."""
    target.mkdir(parents=True, exist_ok=True)
    complete = {path.name: path for pattern in patterns for path in sorted(source.glob(pattern))}
    digests = {name: _sha256(path) for name, path in complete.items()}
    lines = [f"{digest}  {name}\n" for name, digest in sorted({**receipt(target), **digests}.items())]
    with replacing(target / RECEIPT) as file:
        file.write("".join(lines).encode("ascii"))
    for name, path in complete.items():
        if find(target, name) is None:
            path.replace(target / name)


def receipt(folder: Path) -> dict[str, str]:
    """Return the SHA-256 by name of the files that were downloaded into ``folder``; empty where there is no receipt."""
    try:
        lines = (folder / RECEIPT).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def torchvision_datasets() -> ModuleType:
    """Import ``torchvision.datasets``.

    The wheel of torchvision 0.28.0 that is built for CUDA fails to import beside a CPU-only torch, because its compiled
    operators do not load. Nothing here uses them, so when the import fails with just that error, the two operators it
    asks for are declared and it is imported again.
    """
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
