"""Data sets in files of a user's own, named by their path where a data set's name is expected.

``pets/`` is a folder of images by class; of ``pets/:0.3``, which is not split, 30 % are tested on. ``shapes.npz`` holds
arrays.
"""

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from fl.arrays import AnyArray
from fl.data import image_folder
from fl.data.dataset import Dataset, DatasetError, DatasetInfo, Source
from fl.data.own_dataset import KEPT, dataset_of
from flmarket.core.errors import InputError
from flmarket.core.home import expanded

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

    @property
    def info(self) -> DatasetInfo:
        return self._loaded().info

    def load(self, root: Path, *, download: bool) -> Dataset:
        return self._loaded()

    def _loaded(self) -> Dataset:
        try:
            if not re.fullmatch(_PATTERN, self.name):
                raise DatasetError(
                    "a path consists of letters, digits, spaces and . _ - ~ / \\ :, and does not start with a space, "
                    "'-' or ':'; rename the folder, or link to it"
                )
            path = expanded(_parts(self.name)[0]).absolute()
            return _load(self.name, path, _state(path))
        except OSError as error:
            raise DatasetError(f"data set {self.name!r}: cannot be read: {error.strerror}: {error.filename}") from error
        except InputError as error:
            raise DatasetError(f"data set {self.name!r}: {error}") from error


def _state(path: Path) -> tuple[object, ...]:
    """Return what changes when files are added or removed, or an ``.npz`` is written, so that it is loaded again."""
    stats = {str(each): each.stat() for each in (path, *path.glob("*/"), *path.glob("*/*/"))}
    return tuple((each, stat.st_mtime_ns, stat.st_size) for each, stat in sorted(stats.items()))


@lru_cache(maxsize=KEPT)
def _load(name: str, path: Path, _state: tuple[object, ...]) -> Dataset:
    share = _parts(name)[1]
    if path.is_dir():
        return dataset_of(name, "a folder of images", "file", image_folder.read(path, share))
    if path.suffix != ".npz":
        raise DatasetError("is neither a folder nor an .npz file")
    if share is not None:
        raise DatasetError(f"is split already; leave out :{share}")
    try:
        arrays = _npz(path)
    except Exception as error:  # of damaged files: errors of all kinds
        raise DatasetError(f"cannot be read: {error}; it must hold pixels, labels and split (docs/data.md)") from error
    return dataset_of(name, "arrays of an .npz file", "file", arrays)


def _npz(path: Path) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return training images and labels, and test images and labels, of a file that ``numpy.savez`` wrote.

    ``pixels`` and ``labels`` have an entry for each image, as ``split``: "train" or "test", or 0 or 1 in their place.
    """
    if not zipfile.is_zipfile(path):  # of which NumPy would say that it is a pickle
        raise ValueError("it is not an .npz file")
    with np.load(path, allow_pickle=False) as archive:
        if missing := [name for name in _ARRAYS if name not in archive]:
            raise ValueError(f"it has no {' and no '.join(missing)}")
        pixels, labels, split = (_array(archive, name) for name in _ARRAYS)
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
    return pixels[split == train], labels[split == train], pixels[split == test], labels[split == test]


def _array(archive: Mapping[str, AnyArray], name: str) -> AnyArray:
    try:
        return archive[name]
    except ValueError as error:  # of Python objects, which are pickles
        raise ValueError(f"its {name} must be an array of numbers or words, not of Python objects") from error
