"""Data sets in files of a user's own, named by their path where a data set's name is expected.

    dataset = "pets/"            a folder of images by class     (fl.image_folder)
    dataset = "pets/:0.3"        the same, of which 30 % are tested on, for a folder that is not split
    dataset = "shapes.npz"       arrays                          (fl.npz)

A name with a slash, or one that ends in ``.npz``, is a path; relative ones start at the current folder, as those of
checkpoints do. The path is the data set's name in logs and fits; what decides is the SHA-256 of its arrays in
meta.json.
"""

import re
import stat
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from fl import image_folder, npz
from fl.dataset import Arrays, Dataset, DatasetError, DatasetInfo, Source
from fl.errors import InputError
from fl.home import expanded
from fl.own_arrays import checked, dataset_of

_KEPT = 4  # data sets that stay loaded, so that those who check a scenario and those who run it share the arrays

_MOST_CLASSES = 5  # whose names are in a description

_PATTERN = r"[A-Za-z0-9_.~/\\][A-Za-z0-9_.~/\\ :-]*"  # paths stand in tables and logs, as names do


def is_path(name: str) -> bool:
    """Return whether a data set's name is a path of files."""
    path, _ = _parts(name)
    return "/" in path or "\\" in path or path.endswith(".npz")


@dataclass(frozen=True)
class OwnFiles(Source):
    """A data set in a folder or a file."""

    name: str  # its path, with the share of test images if one is given

    @property
    def info(self) -> DatasetInfo:
        return self._loaded().info

    def load(self, root: Path, *, download: bool) -> Dataset:
        return self._loaded()

    def _loaded(self) -> Dataset:
        if not re.fullmatch(_PATTERN, self.name):
            raise DatasetError(
                f"data set {self.name!r}: a path consists of letters, digits, spaces and . _ - ~ / \\ :, and does not "
                "start with a space, '-' or ':'; rename the folder, or link to it"
            )
        try:
            path = expanded(_parts(self.name)[0]).absolute()
            return _load(self.name, path, _state(path))
        except InputError as error:
            raise DatasetError(f"data set {self.name!r}: {error}") from error.__cause__


def _parts(name: str) -> tuple[str, str | None]:
    """Return the path, and the share of test images as it is written."""
    found = re.fullmatch(r"(.*):([0-9.]+)", name)
    return (found[1], found[2]) if found else (name, None)


def _state(path: Path) -> tuple[object, ...]:
    """Return what changes when files are added or removed, or an ``.npz`` is written, so that it is loaded again."""
    try:
        folders = [path, *path.glob("*/"), *path.glob("*/*/")]
        return tuple((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in sorted(folders))
    except OSError:  # reading it reports what is wrong
        return ()


@lru_cache(maxsize=_KEPT)
def _load(name: str, path: Path, _state: tuple[object, ...]) -> Dataset:
    share = _share(_parts(name)[1])
    if _is_folder(path):
        *arrays, classes = image_folder.read(path, share)
        shown = ", ".join(classes[:_MOST_CLASSES]) + (", ..." if len(classes) > _MOST_CLASSES else "")
        description = f"images of {len(classes)} classes: {shown}"
        return dataset_of(name, description, "file", checked(tuple(arrays)))
    if path.suffix != ".npz":
        raise DatasetError("no such folder" if not path.exists() else "is neither a folder nor an .npz file")
    if share is not None:
        raise DatasetError(f"is split already; leave out :{float(share):g}")
    arrays_: Arrays = checked(npz.read(path))
    return dataset_of(name, "arrays of an .npz file", "file", arrays_)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise DatasetError(f"cannot be read: {error.strerror}") from error


def _share(text: str | None) -> Fraction | None:
    try:
        share = None if text is None else Fraction(text)
    except ValueError:
        share = Fraction(0)
    if share is not None and not 0 < share < 1:
        raise DatasetError(f"the share of test images must lie between 0 and 1, not {text}")
    return share
