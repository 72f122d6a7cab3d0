"""Downloads through torchvision: which files a data set consists of, and fetching them. No other module imports it.

torchvision knows the addresses and checks the archives' checksums; ``fl.idx`` reads the files. As torchvision takes any
file that is present for a good one, a download goes into a temporary folder first, and its files move to their place
once all of them are complete. An interrupted download leaves nothing that could be mistaken for data.
"""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, ModuleType
from typing import Any

from fl.files import replacing

RECEIPT = "flmarket.sha256"
"""The file beside downloaded ones that holds their SHA-256, in the format of ``sha256sum``."""

MISSING_OPERATOR = "operator torchvision::nms does not exist"


class DownloadError(Exception):
    """A download failed; the message says why."""


@dataclass(frozen=True)
class RawFiles:
    """A data set as files in torchvision's layout.

    Attributes:
        source: torchvision's class, which also names the folder.
        files: training images, training labels, test images, test labels.
        requests: arguments with which that class downloads all of them.
        first_label: the lowest label in the files.
        transposed: images are stored with rows and columns exchanged, as in the NIST files that EMNIST was made of.
    """

    source: str
    files: tuple[str, str, str, str]
    requests: tuple[Mapping[str, Any], ...] = ({"train": False},)
    first_label: int = 0
    transposed: bool = False

    @property
    def folder(self) -> Path:
        """Folder of the files, relative to the data root."""
        return Path(self.source) / "raw"


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
        requests=({"split": split, "train": False},),
        first_label=first_label,
        transposed=True,
    )


RAW_FILES: Mapping[str, RawFiles] = MappingProxyType(
    {
        "mnist": _mnist_like("MNIST"),
        "fashion-mnist": _mnist_like("FashionMNIST"),
        "kmnist": _mnist_like("KMNIST"),
        "qmnist": RawFiles(
            "QMNIST",
            (
                "qmnist-train-images-idx3-ubyte",
                "qmnist-train-labels-idx2-int",
                "qmnist-test-images-idx3-ubyte",
                "qmnist-test-labels-idx2-int",
            ),
            requests=({"what": "train"}, {"what": "test"}),
        ),
        "emnist-letters": _emnist("letters", first_label=1),
        **{f"emnist-{split}": _emnist(split) for split in ("digits", "balanced", "byclass", "bymerge", "mnist")},
    }
)


def find(folder: Path, name: str) -> Path | None:
    """Return the file of that name, plain or gzip-compressed, or None where there is neither."""
    for path in (folder / name, folder / f"{name}.gz"):
        try:
            path.stat()
        except OSError:  # also a folder that may not be looked into
            continue
        return path
    return None


def download(raw: RawFiles, root: Path) -> None:
    """Download a data set's files into ``root``; files that are there already stay as they are.

    Raises:
        DownloadError: no network, no such address, a wrong checksum, or ``root`` cannot be written.
    """
    try:
        sets = torchvision_datasets()
        root.mkdir(parents=True, exist_ok=True)
        # On the same file system, so that a file moves in one step.
        with TemporaryDirectory(prefix=".download-", dir=root) as temporary:
            for request in raw.requests:
                getattr(sets, raw.source)(temporary, download=True, **request)
            _move_in(Path(temporary) / raw.folder, root / raw.folder)
    except (OSError, RuntimeError, ImportError, EOFError, HTTPException, zlib.error) as error:
        raise DownloadError(" ".join(str(error).split()) or type(error).__name__) from error


def _move_in(source: Path, target: Path) -> None:
    """Move complete files to where they belong, after the receipt that says what they should be."""
    target.mkdir(parents=True, exist_ok=True)
    complete = {path.name: path for path in sorted(source.glob("*-ubyte")) + sorted(source.glob("*-idx2-int"))}
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
