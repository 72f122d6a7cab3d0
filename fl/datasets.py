"""Data sets by name, as arrays: images uint8 [N, 28, 28] and labels uint8 [N], read-only.

Embedded sets need no network. The others are read from torchvision's folder layout below ``data_root()``, and downloaded
there through torchvision when they are missing; files that are there are checked, and never downloaded again or written.
Importing this module is cheap: what is slow is imported when a data set is loaded.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from fl.errors import InputError
from fl.idx import DatasetError, corrupt, read_idx

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "UnknownDatasetError",
    "data_root",
    "info",
    "load",
    "names",
]

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.uint8]

IMAGE_SHAPE = (28, 28)


class UnknownDatasetError(InputError):
    """There is no data set of that name."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What is known of a data set without loading it.

    Attributes:
        name: as scenarios use it.
        description: one line for ``flmarket datasets``.
        labels: L.
        train_size, test_size: images in the official splits.
        rarest_label: training images of the label that has fewest, or a safe lower bound of that.
        source: ``embedded``, or ``download``.
    """

    name: str
    description: str
    labels: int
    train_size: int
    test_size: int
    rarest_label: int
    source: Literal["embedded", "download"]


@dataclass(frozen=True, slots=True)
class _Files:
    """Where torchvision keeps a data set.

    Attributes:
        kind: torchvision's class, also the name of the folder.
        train, test: names of the image and label files.
        split: of EMNIST.
        first_label: what the file calls label 0.
        transposed: images are stored with rows and columns swapped.
    """

    kind: str
    train: tuple[str, str]
    test: tuple[str, str]
    split: str | None = None
    first_label: int = 0
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    """A loaded data set. Arrays are read-only.

    Attributes:
        info: its name and official sizes.
        train_images, train_labels: the split that clients draw from; [N, 28, 28] and [N].
        test_images, test_labels: the split that models are evaluated on.
        digests: SHA-256 by file, or of the generated arrays.
        official: whether the files are the official ones; results on others must say so.
        by_label: for each label, the indices of its training images.
        scale, offset: ``pixel * scale + offset`` has mean 0 and deviation 1 over the training split.
    """

    info: DatasetInfo
    train_images: Images
    train_labels: Labels
    test_images: Images
    test_labels: Labels
    digests: Mapping[str, str]
    official: bool
    by_label: tuple[npt.NDArray[np.int64], ...]
    scale: float
    offset: float


_MNIST = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)


def _emnist(split: str, first_label: int = 0) -> _Files:
    train, test = (
        (f"emnist-{split}-{part}-images-idx3-ubyte", f"emnist-{split}-{part}-labels-idx1-ubyte")
        for part in ("train", "test")
    )
    return _Files("EMNIST", train, test, split, first_label, transposed=True)


_DOWNLOADED: Mapping[str, _Files] = {
    "mnist": _Files("MNIST", *_MNIST),
    "fashion-mnist": _Files("FashionMNIST", *_MNIST),
    "kmnist": _Files("KMNIST", *_MNIST),
    "qmnist": _Files(
        "QMNIST",
        ("qmnist-train-images-idx3-ubyte", "qmnist-train-labels-idx2-int"),
        ("qmnist-test-images-idx3-ubyte", "qmnist-test-labels-idx2-int"),
    ),
    "emnist-digits": _emnist("digits"),
    "emnist-letters": _emnist("letters", first_label=1),
    "emnist-balanced": _emnist("balanced"),
    "emnist-byclass": _emnist("byclass"),
    "emnist-bymerge": _emnist("bymerge"),
    "emnist-mnist": _emnist("mnist"),
}

_INFOS = (
    DatasetInfo("digits", "real 8x8 handwritten digits (scikit-learn), enlarged", 10, 1_438, 359, 139, "embedded"),
    DatasetInfo("strokes", "drawn digits, mildly distorted: easy", 10, 12_000, 2_000, 1_200, "embedded"),
    DatasetInfo("scribbles", "drawn signs that look alike, much distorted: hard", 10, 12_000, 2_000, 1_200, "embedded"),
    DatasetInfo("mnist", "handwritten digits", 10, 60_000, 10_000, 5_421, "download"),
    DatasetInfo("fashion-mnist", "articles of clothing", 10, 60_000, 10_000, 6_000, "download"),
    DatasetInfo("emnist-digits", "handwritten digits of NIST SD 19", 10, 240_000, 40_000, 24_000, "download"),
    DatasetInfo("emnist-letters", "handwritten letters, both cases merged", 26, 124_800, 20_800, 4_800, "download"),
    DatasetInfo("emnist-balanced", "digits and letters, balanced", 47, 112_800, 18_800, 2_400, "download"),
    DatasetInfo("emnist-byclass", "digits and letters, as they occur", 62, 697_932, 116_323, 1_000, "download"),
    DatasetInfo("emnist-bymerge", "the same, similar cases merged", 47, 697_932, 116_323, 1_000, "download"),
    DatasetInfo(
        "emnist-mnist", "handwritten digits of NIST SD 19, MNIST's size", 10, 60_000, 10_000, 6_000, "download"
    ),
    DatasetInfo("kmnist", "cursive Japanese characters", 10, 60_000, 10_000, 6_000, "download"),
    DatasetInfo("qmnist", "MNIST, its test set restored to 60,000", 10, 60_000, 60_000, 5_421, "download"),
)
DATASETS: Mapping[str, DatasetInfo] = {found.name: found for found in _INFOS}

# SHA-256 of the official files whose archives have the MD5 that torchvision checks.
_OFFICIAL: Mapping[str, frozenset[str]] = {
    "mnist": frozenset({
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",  # train-images-idx3-ubyte
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",  # train-labels-idx1-ubyte
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",  # t10k-images-idx3-ubyte
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",  # t10k-labels-idx1-ubyte
    }),
    "fashion-mnist": frozenset({
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",  # train-images-idx3-ubyte
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",  # train-labels-idx1-ubyte
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",  # t10k-images-idx3-ubyte
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",  # t10k-labels-idx1-ubyte
    }),
}  # fmt: skip


def names() -> list[str]:
    """Return the names of all data sets."""
    return list(DATASETS)


def info(name: str) -> DatasetInfo:
    """Return what is known of a data set without loading it.

    Raises:
        UnknownDatasetError: there is none of that name.
    """
    if name not in DATASETS:
        near = get_close_matches(name, DATASETS, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise UnknownDatasetError(f"there is no data set {name!r}{hint}; there are {', '.join(DATASETS)}")
    return DATASETS[name]


def data_root() -> Path:
    """Return the folder of downloaded data: ``$FLMARKET_DATA``, or ``flmarket`` in the user's cache folder."""
    if chosen := os.environ.get("FLMARKET_DATA"):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "flmarket"


def load(name: str, root: Path | None = None, *, download: bool = True) -> Dataset:
    """Return a data set.

    Args:
        name: one of ``names()``.
        root: the folder of downloaded data, instead of ``data_root()``.
        download: fetch it through torchvision where it is missing.

    Raises:
        UnknownDatasetError: there is none of that name.
        DatasetError: a file is missing or corrupt; says which, and what to do.
    """
    found = info(name)
    if name in _DOWNLOADED:
        return _from_files(found, _DOWNLOADED[name], root or data_root(), download=download)
    if name == "digits":
        from fl.embedded import digits

        train, train_labels, test, test_labels = digits()
    else:
        from fl.strokes import draw

        train, train_labels, test, test_labels = draw(name)
    arrays = {"train-images": train, "train-labels": train_labels, "test-images": test, "test-labels": test_labels}
    digests = {part: hashlib.sha256(array.tobytes()).hexdigest() for part, array in arrays.items()}
    return _dataset(found, train, train_labels, test, test_labels, digests, official=True)


def _from_files(found: DatasetInfo, files: _Files, root: Path, *, download: bool) -> Dataset:
    folder = root / files.kind / "raw"
    wanted = [folder / name for name in (*files.train, *files.test)]
    missing = [path for path in wanted if not (path.exists() or path.with_name(path.name + ".gz").exists())]
    if missing:
        if not download:
            raise DatasetError(
                f"{missing[0]}: there is no such file; put torchvision's raw files there, or set FLMARKET_DATA"
            )
        from fl.vision import download as fetch

        if files.kind == "QMNIST":
            for what in ("train", "test"):
                fetch(files.kind, root, what=what)
        else:
            fetch(files.kind, root, **({"split": files.split} if files.split else {}))
    train, train_labels, train_digests = _split(folder, files.train, files, found.labels)
    test, test_labels, test_digests = _split(folder, files.test, files, found.labels)
    digests = train_digests | test_digests
    if found.name in _OFFICIAL:
        official = set(digests.values()) == _OFFICIAL[found.name]
    else:  # no digests are published for single files; torchvision checks those of the archive that it downloads
        official = (len(train), len(test)) == (found.train_size, found.test_size)
    return _dataset(found, train, train_labels, test, test_labels, digests, official=official)


def _split(folder: Path, names: tuple[str, str], files: _Files, labels: int) -> tuple[Images, Labels, dict[str, str]]:
    """Read and check one split: images [N, 28, 28], labels [N], and the digests of both files."""
    images_path, labels_path = (folder / name for name in names)
    pictures = read_idx(images_path, 3)
    # QMNIST keeps eight numbers with each image, the first of which is its class.
    extended = names[1].endswith("idx2-int")
    classes = read_idx(labels_path, 2 if extended else 1)
    images = pictures.array
    values = (classes.array[:, 0] if extended else classes.array).astype(np.int64) - files.first_label
    if images.dtype != np.uint8 or images.shape[1:] != IMAGE_SHAPE:
        raise corrupt(images_path, f"holds images of shape {images.shape[1:]}, not {IMAGE_SHAPE}")
    if len(values) != len(images):
        raise corrupt(labels_path, f"holds {len(values):,} labels for {len(images):,} images")
    if len(values) == 0 or values.min() < 0 or values.max() >= labels:
        raise corrupt(labels_path, f"holds labels other than the {labels} of this data set")
    upright = images.transpose(0, 2, 1) if files.transposed else images
    digests = {images_path.name: pictures.digest, labels_path.name: classes.digest}
    return np.ascontiguousarray(upright, dtype=np.uint8), values.astype(np.uint8), digests


def _dataset(
    found: DatasetInfo,
    train: Images,
    train_labels: Labels,
    test: Images,
    test_labels: Labels,
    digests: Mapping[str, str],
    *,
    official: bool,
) -> Dataset:
    for array in (train, train_labels, test, test_labels):
        array.setflags(write=False)
    by_label = tuple(np.flatnonzero(train_labels == label) for label in range(found.labels))
    # Mean and deviation from the histogram: exact, and no float copy of all pixels.
    counts = np.bincount(train.ravel(), minlength=256)
    values = np.arange(256)
    mean = float((counts * values).sum() / train.size)
    deviation = float(np.sqrt((counts * (values - mean) ** 2).sum() / train.size))
    return Dataset(
        found, train, train_labels, test, test_labels, digests, official, by_label, 1 / deviation, -mean / deviation
    )
