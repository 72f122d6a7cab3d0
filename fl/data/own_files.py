"""Data sets in files of a user's own, named by their path where a data set's name is expected.

``pets/`` is a folder of images by class; of ``pets/:0.3``, which is not split, 30 % are tested on. ``shapes.npz`` holds
arrays.
"""

import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Self

import numpy as np

from fl.arrays import AnyArray
from fl.data import image_folder
from fl.data.dataset import Dataset, DatasetError, DatasetInfo, Source
from fl.data.own_dataset import KEPT, NAMES, GivenArrays, channels_of, dataset_of, unused_of
from flmarket.core.errors import InputError
from flmarket.core.files import expanded, version

_ARRAYS = ("pixels", "labels", "split")  # of an .npz
_PATTERN = r"[A-Za-z0-9_.~/\\][A-Za-z0-9_.~/\\ :-]*"  # paths stand in tables and logs, as names do


def is_path(name: str) -> bool:
    """Return whether a data set's name is a path of files."""
    path, _ = _parts(name)
    return "/" in path or "\\" in path or path.endswith(".npz")


def _parts(name: str) -> tuple[str, str | None]:
    """Return the path, and the share of test images as it is written."""
    found = re.fullmatch(r"(.*):([0-9.]+)", name)
    return (found[1], found[2]) if found else (name, None)


@dataclass(frozen=True)
class OwnFiles(Source):
    """A data set in a folder or an ``.npz`` file."""

    name: str  # its path, with the share of test images if one is given
    path: Path
    state: tuple[object, ...]  # what is another one when files come, go or are replaced, so that they are read again

    @classmethod
    def of(cls, name: str) -> Self:
        with _told(name):
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
        with _told(self.name):
            return _load(self)


@contextmanager
def _told(name: str) -> Iterator[None]:
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
        return dataset_of(name, "a folder of images", "file", image_folder.read(path, share))
    if path.suffix != ".npz" or not path.is_file():
        raise DatasetError("is neither a folder nor an .npz file")
    if share is not None:
        raise DatasetError(f"is split already; leave out :{share}")
    try:
        found = _npz(path)
    except Exception as error:  # of damaged files: errors of all kinds
        raise DatasetError(f"cannot be read: {error}; it must hold pixels, labels and split (docs/data.md)") from error
    return dataset_of(name, "arrays of an .npz file", "file", found)


def _npz(path: Path) -> GivenArrays:
    """Return training images and labels, and test images and labels, of a file that ``numpy.savez`` wrote.

    ``pixels`` and ``labels`` have an entry for each image, as ``split``: "train" or "test", or 0 or 1 in their place.
    Or the arrays have the names of ``own_dataset.NAMES``.
    """
    if not zipfile.is_zipfile(path):  # of which NumPy would say that it is a pickle
        raise ValueError("it is not an .npz file")
    with np.load(path, allow_pickle=False) as archive:
        if sum(member.file_size for member in archive.zip.infolist()) > image_folder.MOST_BYTES:
            raise ValueError("its arrays take more than 8 GiB")
        given = {name: _array(archive, name) for name in archive}
    if any(names[0] in given for names in NAMES):
        return GivenArrays.named(given)
    if missing := [name for name in _ARRAYS if name not in given]:
        raise ValueError(f"it has no {' and no '.join(missing)}")
    pixels, labels, split = (given[name] for name in _ARRAYS)
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
    return GivenArrays(arrays, channels_of(given), unused=unused_of(given, _ARRAYS))


def _array(archive: Mapping[str, AnyArray], name: str) -> AnyArray:
    try:
        return archive[name]
    except ValueError as error:  # of Python objects, which are pickles
        raise ValueError(f"its {name} must be an array of numbers or words, not of Python objects") from error
