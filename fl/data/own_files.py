"""Data sets in files of a user's own, named by their path where a data set's name is expected.

``pets/`` is a folder of images, sorted into a folder for each class: ``pets/train/cat/1.png`` and
``pets/test/cat/2.png``, or without a split ``pets/cat/1.png``; of ``pets/:0.3``, which has none, 30 % are tested on.
Classes are numbered in the order of names. Whatever else lies there is refused, so that no picture is left out without
a word; but for hidden files and notes. ``shapes.npz`` holds arrays.
"""

import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Self

import numpy as np

from fl.arrays import AnyArray, IntArray, Pixels
from fl.data.dataset import Dataset, DatasetError, DatasetInfo, Shape, Source
from fl.data.own_dataset import KEPT, NAMES, RawArrays, dataset_of
from flmarket.core.errors import InputError
from flmarket.core.files import expanded, version

SUFFIXES = {
    ".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"
}  # fmt: skip
_NOTES = {".csv", ".db", ".html", ".ini", ".json", ".md", ".txt", ".xml"}  # that may lie among pictures
MOST_BYTES = 1 << 33  # of all decoded images together: they are kept in memory
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_MODES = {"1": "L", "L": "L", "P": "RGB", "RGB": "RGB"}  # as which pixels are read without loss
_SHARE = "0.2"  # of each class that is tested on, where the folder has no split and the scenario names none

Pictures = list[tuple[Path, int]]  # files of pictures, and the class of each

_ARRAYS = ("pixels", "labels", "split")  # of an .npz; "features" may stand in place of "pixels"
_PATTERN = r"[A-Za-z0-9_.~/\\][A-Za-z0-9_.~/\\ :-]*"  # paths stand in tables and logs, as names do


def is_path(name: str) -> bool:
    """Return whether a data set's name is a path of files."""
    path, _ = _parts(name)
    return "/" in path or "\\" in path or path.endswith(".npz")


def _parts(name: str) -> tuple[str, str | None]:
    """Return the path, and the share of test images as it is written."""
    match = re.fullmatch(r"(.*):([0-9.]+)", name)
    return (match[1], match[2]) if match else (name, None)


@dataclass(frozen=True)
class OwnFiles(Source):
    """A data set in a folder or an ``.npz`` file."""

    name: str  # its path, with the share of test images if one is given
    path: Path
    state: tuple[object, ...]  # what is another one when files come, go or are replaced, so that they are read again

    @classmethod
    def of(cls, name: str) -> Self:
        with _named(name):
            if not re.fullmatch(_PATTERN, name):
                raise DatasetError(
                    "a path consists of letters, digits, spaces and . _ - ~ / \\ :, and does not start with a space, "
                    "'-' or ':'; rename the folder, or link to it"
                )
            path = expanded(_parts(name)[0]).absolute()
            return cls(name, path, tuple(_versions(path)))

    @property
    def info(self) -> DatasetInfo:
        return self.load(self.path, download=False).info

    def load(self, root: Path, *, download: bool) -> Dataset:
        with _named(self.name):
            return _load(self)


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DatasetError(f"data set {name!r}: cannot be read: {error.strerror}: {error.filename}") from error
    except InputError as error:
        raise DatasetError(f"data set {name!r}: {error}") from error


def _versions(path: Path) -> Iterator[tuple[object, ...]]:
    """Yield the version of a file, or of all that lies in a folder."""
    yield version(path.stat())
    folders = [str(path)] * path.is_dir()
    for _ in range(3):  # splits, classes, pictures; thousands of them, in half the time that paths take
        entries = [entry for folder in folders for entry in sorted(os.scandir(folder), key=attrgetter("name"))]
        yield from ((entry.path, *version(entry.stat())) for entry in entries if entry.name[0] != ".")
        folders = [entry.path for entry in entries if entry.name[0] != "." and entry.is_dir()]


@lru_cache(maxsize=KEPT)
def _load(files: OwnFiles) -> Dataset:
    name, path, share = files.name, files.path, _parts(files.name)[1]
    if path.is_dir():
        return dataset_of(name, "a folder of images", "file", _folder(path, share))
    if path.suffix != ".npz" or not path.is_file():
        raise DatasetError("is neither a folder nor an .npz file")
    if share is not None:
        raise DatasetError(f"is split already; leave out :{share}")
    try:
        arrays = _npz(path)
    except Exception as error:  # of damaged files: errors of all kinds
        raise DatasetError(f"cannot be read: {error}; it must hold pixels, labels and split (docs/data.md)") from error
    return dataset_of(name, "arrays of an .npz file", "file", arrays)


def _npz(path: Path) -> RawArrays:
    """Return training images and labels, and test images and labels, of a file that ``numpy.savez`` wrote.

    ``pixels`` and ``labels`` have an entry for each image, as ``split``: "train" or "test", or 0 or 1 in their place.
    Or the arrays have the names of ``own_dataset.NAMES``.
    """
    if not zipfile.is_zipfile(path):  # of which NumPy would say that it is a pickle
        raise ValueError("it is not an .npz file")
    with np.load(path, allow_pickle=False) as archive:
        if sum(member.file_size for member in archive.zip.infolist()) > MOST_BYTES:
            raise ValueError("its arrays take more than 8 GiB")
        members = {name: _array(archive, name) for name in archive}
    if any(names[0] in members for names in NAMES):
        return RawArrays.named(members)
    names = ("features", *_ARRAYS[1:]) if "features" in members else _ARRAYS
    if missing := [name for name in names if name not in members]:
        raise ValueError(f"it has no {' and no '.join(missing)}")
    pixels, labels, split = (members[name] for name in names)
    for name, array in (("labels", labels), ("split", split)):
        if array.shape != pixels.shape[:1]:
            shape = f"the shape {list(pixels.shape[:1])}, one for each image"
            raise ValueError(f"its {name} must have {shape}, not {list(array.shape)}")
    train, test = ("train", "test") if split.dtype.kind == "U" else (0, 1)
    wrong = split[~np.isin(split, (train, test))]
    if wrong.size:
        raise ValueError(f"its split must be 'train' or 'test' (or 0 or 1) for each image, not {wrong[0].item()!r}")
    for part in (train, test):
        if part not in split:
            raise ValueError(f"no image is in the split {part!r}")
    arrays = pixels[split == train], labels[split == train], pixels[split == test], labels[split == test]
    return RawArrays.beside(arrays, members, names)


def _array(archive: Mapping[str, AnyArray], name: str) -> AnyArray:
    try:
        return archive[name]
    except ValueError as error:  # of Python objects, which are pickles
        raise ValueError(f"its {name} must be an array of numbers or words, not of Python objects") from error


def _folder(
    folder: Path,
    share: str | None,  # of each class that is tested on, as it is written
) -> RawArrays:
    """Return training images and labels, and test images and labels, of a folder of pictures."""
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        if others := [path.name for path in _entries(folder) if path.name not in ("train", "test")]:
            raise DatasetError(
                f"has {others[0]!r} beside 'train' and 'test', which would not be read; move it away, or merge it into "
                "one of them: validation images are taken from the training images (training.validation)"
            )
        if share is not None:
            raise DatasetError(f"is split into 'train' and 'test' already; leave out :{share}")
        classes = _classes(folder / "train")
        if unknown := sorted({*_classes(folder / "test")} - {*classes}):
            raise DatasetError(f"has the class {unknown[0]!r} in 'test', but not in 'train'")
        train, test = (
            [
                (path, label)
                for label, name in enumerate(classes)
                if (folder / part / name).is_dir()
                for path in _pictures(folder / part / name)
            ]
            for part in ("train", "test")
        )
    else:
        classes = _classes(folder)
        train, test = _split(folder, classes, share or _SHARE)
    images = _pixels(folder, [path for path, _ in (*train, *test)])
    arrays = images[: len(train)], _labels(train), images[len(train) :], _labels(test)
    return RawArrays(arrays, "first", classes)


def _split(folder: Path, classes: Sequence[str], share: str) -> tuple[Pictures, Pictures]:
    """Return training and test pictures: of each class, those at even distances in the order of names are tested on."""
    try:
        part = Fraction(share)
    except ValueError:
        part = Fraction(0)
    if not 0 < part < 1:
        raise DatasetError(f"the share of test images must lie between 0 and 1, not {share}")
    train: Pictures = []
    test: Pictures = []
    for label, name in enumerate(classes):
        files = _pictures(folder / name)
        if (count := len(files)) < 2:
            raise DatasetError(f"has only one image in {name!r}; a class that is to be split needs at least two")
        wanted = min(count - 1, max(1, round(count * part)))
        tested = {(2 * k + 1) * count // (2 * wanted) for k in range(wanted)}
        for place, path in enumerate(files):
            (test if place in tested else train).append((path, label))
    return train, test


def _classes(folder: Path) -> list[str]:
    entries = _entries(folder)
    if not any(path.is_dir() for path in entries):
        raise DatasetError(f"holds no folders in {folder.name!r}; sort its images into one folder for each class")
    if others := [path for path in entries if not path.is_dir()]:
        raise DatasetError(f"{others[0]}: lies beside the folders of classes; put it into one, or move it away")
    return [path.name for path in entries]


def _pictures(folder: Path) -> list[Path]:
    entries = _entries(folder)
    pictures = [path for path in entries if path.suffix.lower() in SUFFIXES and path.is_file()]
    if not pictures:
        raise DatasetError(f"has no images in {str(folder)!r} ({', '.join(sorted(SUFFIXES))})")
    if others := sorted({*entries} - {*pictures}):
        what = "a folder in that of a class" if others[0].is_dir() else "not a picture of a kind that is read"
        raise DatasetError(f"{others[0]}: is {what} ({', '.join(sorted(SUFFIXES))}); convert it, or move it away")
    return pictures


def _entries(folder: Path) -> list[Path]:
    """Return the folders, and the files that are neither hidden nor notes, in the order of their names."""
    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and (path.suffix.lower() not in _NOTES or path.is_dir())
    )


def _labels(pictures: Pictures) -> IntArray:
    return np.array([label for _, label in pictures])


def _pixels(folder: Path, paths: Sequence[Path]) -> Pixels:
    """Return the pictures as one array [n, channels, height, width]."""
    first = _picture(paths[0])
    if len(paths) * first.size > MOST_BYTES:
        raise DatasetError(f"its {len(paths):,} images of {Shape(*first.shape)} take more than 8 GiB")
    images = np.empty((len(paths), *first.shape), np.uint8)
    for place, path in enumerate(paths):
        picture = _picture(path)
        if picture.shape != first.shape:
            raise DatasetError(
                f"its images must have one shape: {paths[0].relative_to(folder)} is {Shape(*first.shape)}, "
                f"{path.relative_to(folder)} is {Shape(*picture.shape)}"
            )
        images[place] = picture
    return images


def _picture(path: Path) -> AnyArray:
    """Return one picture [channels, height, width]."""
    try:
        return _decoded(path)
    except Exception as error:  # decoders raise all kinds
        raise DatasetError(f"{path}: {error}; save it as 8-bit grey or RGB, or remove it") from error


def _decoded(path: Path) -> AnyArray:
    from PIL import Image  # comes with torchvision

    with Image.open(path, formats=_FORMATS) as image:
        mode = _MODES.get(image.mode)
        if mode is None or "transparency" in image.info:
            raise ValueError(f"its pixels are of the kind {image.mode!r}, or transparent")
        if (count := getattr(image, "n_frames", 1)) > 1:
            raise ValueError(f"it holds {count} pictures, of which one would be read")
        pixels = np.asarray(image.convert(mode))
    return pixels[np.newaxis] if mode == "L" else pixels.transpose(2, 0, 1)
