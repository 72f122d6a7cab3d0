"""Data sets of a user's own: four arrays, from a function without arguments or from files (``fl.data.own_files``).

Nothing is declared: what is known of the data set follows from the arrays, so the function is called as soon as a
scenario that names it is checked. It must always return the same.
"""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fl.arrays import AnyArray, ByteArray, Labels, Pixels
from fl.data.dataset import ARRAY_NAMES, Dataset, DatasetError, DatasetInfo, Shape, Source
from flmarket.core.plugin_errors import blame
from flmarket.core.plugins import summary

KEPT = 4  # data sets that stay loaded, so that those who check a scenario and those who run it share the arrays
MOST_LABELS = 256  # labels are stored in one byte


def problem(found: Any) -> str | None:
    """Return why something cannot be a data set, as far as can be seen without calling it."""
    return None if inspect.isroutine(found) else f"is {found!r}; a data set is a function that returns its arrays"


@dataclass(frozen=True)
class OwnDataset(Source):
    """A data set that a user's function returns: its docstring's first line describes it.

    Attributes:
        name: the name it is registered under.
        function: returns training images, training labels, test images and test labels. Images are uint8
            [n, channels, height, width], or [n, height, width] for one channel; labels are integers [n] from 0 to
            L - 1, each of which some training image has.
    """

    name: str
    function: Callable[[], Any]

    @property
    def info(self) -> DatasetInfo:
        return _load(self.name, self.function).info

    def load(self, root: Path, *, download: bool) -> Dataset:
        return _load(self.name, self.function)


@lru_cache(maxsize=KEPT)
def _load(name: str, function: Callable[[], Any]) -> Dataset:
    code = getattr(inspect.unwrap(function), "__code__", None)  # none where it is not written in Python
    what = f"data set {name!r} ({code.co_filename}:{code.co_firstlineno})" if code else f"data set {name!r}"
    try:
        found = function()
    except (Exception, SystemExit) as error:
        raise DatasetError(f"{what}: raised {blame(error)}") from error
    if not isinstance(found, (tuple, list)) or len(found) != 4:
        kind = f"{len(found)} things" if isinstance(found, (tuple, list)) else f"a {type(found).__name__}"
        raise DatasetError(
            f"{what}: must return four arrays (training images, training labels, test images, test labels), not {kind}"
        )
    try:
        return dataset_of(name, summary(function), "plug-in", found)
    except DatasetError as error:
        raise DatasetError(f"{what}: {error}") from error


def dataset_of(
    name: str,
    description: str,
    source: Literal["plug-in", "file"],
    found: Sequence[Any],  # training images, training labels, test images, test labels
) -> Dataset:
    """Return the data set that the arrays make. It is never official: only its user knows its digests."""
    images, test_images = _images("training", found[0]), _images("test", found[2])
    labels, test_labels = _labels("training", found[1], len(images)), _labels("test", found[3], len(test_images))
    shape, test_shape = Shape(*images.shape[1:]), Shape(*test_images.shape[1:])
    if shape != test_shape:
        raise DatasetError(
            f"its training images are {shape} and its test images {test_shape}; they must have the same shape"
        )
    if images.min() == images.max():
        raise DatasetError("its training images are blank: all pixels are equal")
    counts = np.bincount(labels)
    if len(counts) < 2 or not counts.all():
        there = ", ".join(map(str, np.flatnonzero(counts)))
        raise DatasetError(f"its training labels must be numbered from 0 without a gap, at least two; they are {there}")
    if test_labels.max() >= len(counts):
        raise DatasetError(f"a test image has the label {test_labels.max()}, which no training image has")
    known = DatasetInfo(
        name=name,
        description=description,
        labels=len(counts),
        shape=shape,
        train_size=len(labels),
        test_size=len(test_labels),
        rarest_label=int(counts.min()),
        source=source,
        licence="unknown",
    )
    arrays = images, labels, test_images, test_labels
    return Dataset.of(known, arrays, {key: _digest(it) for key, it in zip(ARRAY_NAMES, arrays, strict=True)}, known={})


def _images(split: str, found: Any) -> Pixels:
    array = _array(f"{split} images", found)
    if array.dtype != np.uint8 or array.ndim not in (3, 4) or 0 in array.shape:
        raise DatasetError(
            f"its {split} images must be uint8 [n, channels, height, width], or [n, height, width] for one channel, "
            f"with no dimension 0, not {array.dtype} {list(array.shape)}"
        )
    if array.ndim == 4 and array.shape[-1] in (3, 4) and array.shape[1] > 4:  # as most libraries for pictures have them
        raise DatasetError(
            f"its {split} images have the shape {list(array.shape)}; channels come before height and width: "
            "images.transpose(0, 3, 1, 2)"
        )
    return array[:, np.newaxis] if array.ndim == 3 else array


def _labels(split: str, found: Any, count: int) -> Labels:
    array = _array(f"{split} labels", found)
    if array.dtype.kind not in "iu" or array.shape != (count,):
        raise DatasetError(f"its {split} labels must be integers [{count}], not {array.dtype} {list(array.shape)}")
    if array.min() < 0 or array.max() >= MOST_LABELS:
        raise DatasetError(
            f"its {split} labels must be from 0 to {MOST_LABELS - 1}, not from {array.min()} to {array.max()}"
        )
    return array.astype(np.uint8)


def _array(what: str, found: Any) -> AnyArray:
    """Return a contiguous array, or a view of one: that it becomes read-only must not change the user's own."""
    try:
        return np.ascontiguousarray(found).view()
    except Exception as error:  # of ragged lists, tensors on a GPU
        raise DatasetError(f"its {what} cannot be read as an array: {error}") from error


def _digest(array: ByteArray) -> str:
    """Return the SHA-256 of an array's shape and content: the same bytes in another shape are other images."""
    digest = hashlib.sha256(f"{list(array.shape)}\n".encode())
    digest.update(array.tobytes())
    return digest.hexdigest()
