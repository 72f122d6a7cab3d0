"""Data sets of a user's own: a function without arguments that returns four arrays.

    @flmarket.dataset("shapes")
    def shapes():
        \"\"\"Circles and squares, in colour.\"\"\"
        return train_images, train_labels, test_images, test_labels

Images are uint8 arrays [n, channels, height, width], or [n, height, width] for one channel. Labels are integers [n],
from 0 to L - 1, each of which some training image has. The first line of the docstring describes the data set.

Nothing else is declared. The number of labels, the shape of the images, the sizes and the rarest label follow from the
arrays, and so they cannot contradict them. The price is that the function is called as soon as these are needed, which
is when a scenario that names the data set is checked. It must always return the same: the last four data sets stay
loaded, and the function of another one is called again when its turn comes.
"""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fl.arrays import AnyArray, ByteArray, Labels, Pixels
from fl.blame import blame, describe
from fl.dataset import ARRAY_NAMES, Arrays, Dataset, DatasetError, DatasetInfo, Shape, Source

MOST_LABELS = 256
"""Labels are stored in one byte."""

_KEPT = 4
"""Data sets that stay loaded, so that those who check a scenario and those who run it share the arrays."""


def problem(found: Any) -> str | None:
    """Return why something cannot be a data set, as far as can be seen without calling it."""
    if not callable(found):
        return f"is {found!r}, which cannot be called; a data set is a function that returns its arrays"
    try:
        inspect.signature(found).bind()
    except ValueError:  # of a function that is not written in Python, nothing is known
        return None
    except TypeError as error:
        return f"must be a function without arguments: {error}"
    return None


@dataclass(frozen=True)
class OwnDataset(Source):
    """A data set that a user's function returns.

    Attributes:
        name: the name it is registered under.
        function: returns its arrays.
    """

    name: str
    function: Callable[[], Any]

    @property
    def info(self) -> DatasetInfo:
        """See ``Source.info``."""
        return _load(self.name, self.function).info

    def load(self, root: Path, *, download: bool) -> Dataset:
        """See ``Source.load``; where its files are is the function's own business."""
        return _load(self.name, self.function)


def description(function: Callable[..., Any]) -> str:
    """Return the first line of a function's docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0].strip()


@lru_cache(maxsize=_KEPT)
def _load(name: str, function: Callable[[], Any]) -> Dataset:
    try:
        arrays = _checked(_called(function))
    except DatasetError as error:
        raise DatasetError(f"data set {name!r} ({_place(function)}): {error}") from error.__cause__
    images, labels = arrays[:2]
    found = DatasetInfo(
        name=name,
        description=description(function),
        labels=int(labels.max()) + 1,
        shape=Shape(*images.shape[1:]),
        train_size=len(images),
        test_size=len(arrays[2]),
        rarest_label=int(np.bincount(labels).min()),
        source="plug-in",
        licence="unknown",
    )
    digests = {key: _digest(array) for key, array in zip(ARRAY_NAMES, arrays, strict=True)}
    return Dataset.of(found, arrays, digests, known={})


def _place(function: Callable[..., Any]) -> str:
    """Return where a function stands, as ``file:line``; of one that is not written in Python, its name."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
    return f"{code.co_filename}:{code.co_firstlineno}"


def _called(function: Callable[[], Any]) -> tuple[Any, ...]:
    try:
        found = function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plug-in may raise anything, SystemExit too
        raise DatasetError(f"raised {describe(error)}{blame(error)}") from error
    if not isinstance(found, (tuple, list)) or len(found) != len(ARRAY_NAMES):
        what = f"{len(found)} things" if isinstance(found, (tuple, list)) else f"a {type(found).__name__}"
        raise DatasetError(
            f"must return four arrays (training images, training labels, test images, test labels), not {what}"
        )
    return tuple(found)


def _checked(found: tuple[Any, ...]) -> Arrays:
    """Return the arrays in the form that all data sets have.

    Raises:
        DatasetError: they are no data set; the message says why, without its name.
    """
    images, test_images = _images("training images", found[0]), _images("test images", found[2])
    if images.shape[1:] != test_images.shape[1:]:
        raise DatasetError(
            f"its training images are {Shape(*images.shape[1:])} and its test images {Shape(*test_images.shape[1:])}; "
            "they must have the same shape"
        )
    if images.min() == images.max():
        raise DatasetError("its training images are blank: all pixels are equal")
    labels = _labels("training labels", found[1], len(images))
    test_labels = _labels("test labels", found[3], len(test_images))
    counts = np.bincount(labels)
    if len(counts) < 2:
        raise DatasetError("all its training labels are 0; there must be at least two labels")
    if not counts.all():
        raise DatasetError(
            f"no training image has the label {int(np.flatnonzero(counts == 0)[0])}, but one has {len(counts) - 1}; "
            "number the labels from 0 without a gap"
        )
    if test_labels.max() >= len(counts):
        raise DatasetError(f"a test image has the label {int(test_labels.max())}, which no training image has")
    return images, labels, test_images, test_labels


def _images(what: str, found: Any) -> Pixels:
    array = _array(what, found)
    if array.dtype != np.uint8:
        raise DatasetError(f"its {what} must be uint8, pixels from 0 to 255, not {array.dtype}")
    if array.ndim not in (3, 4) or 0 in array.shape:
        raise DatasetError(
            f"its {what} must have the shape [n, channels, height, width], or [n, height, width] for one channel, "
            f"with no dimension 0, not {list(array.shape)}"
        )
    if array.ndim == 3:
        return array[:, np.newaxis]
    if array.shape[-1] in (3, 4) and array.shape[1] > 4:  # as most libraries for pictures have them
        raise DatasetError(
            f"its {what} have the shape {list(array.shape)}; channels come before height and width: "
            "images.transpose(0, 3, 1, 2)"
        )
    return array


def _labels(what: str, found: Any, count: int) -> Labels:
    array = _array(what, found)
    if array.dtype.kind not in "iu":
        raise DatasetError(f"its {what} must be integers, not {array.dtype}")
    if array.shape != (count,):
        raise DatasetError(f"its {what} must have the shape [{count}], one for each image, not {list(array.shape)}")
    lowest, highest = int(array.min()), int(array.max())
    if lowest < 0 or highest >= MOST_LABELS:
        wrong = lowest if lowest < 0 else highest
        raise DatasetError(f"its {what} must be from 0 to at most {MOST_LABELS - 1}, not {wrong}")
    return array.astype(np.uint8)


def _array(what: str, found: Any) -> AnyArray:
    """Return a contiguous array of the function's own, or a view: becoming read-only must not change the user's."""
    try:
        return np.ascontiguousarray(found).view()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # ragged lists, tensors on a GPU, an __array__ that raises
        raise DatasetError(f"its {what} cannot be read as an array: {describe(error)}") from error


def _digest(array: ByteArray) -> str:
    """Return the SHA-256 of an array's shape and content: the same bytes in another shape are other images."""
    digest = hashlib.sha256(f"{list(array.shape)}\n".encode())
    digest.update(array.tobytes())
    return digest.hexdigest()
