"""Data sets of a user's own: four arrays, from a function without arguments or from files (``fl.data.own_files``).

Nothing is declared: what is known of the data set follows from the arrays, so the function is called as soon as a
scenario that names it is checked. It must always return the same.
"""

import hashlib
import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from fl.arithmetic.ordered_sums import folded_sums
from fl.arrays import AnyArray, Float32Array, Labels, Pixels
from fl.data.dataset import ARRAY_NAMES, Dataset, DatasetError, DatasetInfo, FeatureShape, Shape, Source
from flmarket.core.plugin_errors import blame
from flmarket.core.plugins import summary

MOST_CHANNELS = 4  # of pictures: grey, colour, and either with transparency
KEPT = 4  # data sets that stay loaded, so that those who check a scenario and those who run it share the arrays
MOST_LABELS = 256  # labels are stored in one byte

NAMES = (("train_images", "train_labels", "test_images", "test_labels"), ("x_train", "y_train", "x_test", "y_test"))
"""The names of the arrays; those of MedMNIST, and those of Keras."""


class RawArrays(NamedTuple):
    """The arrays of a data set, as they were given."""

    arrays: Sequence[Any]  # training images, training labels, test images, test labels
    channels: str | None = None  # ``first`` or ``last``, where that is said
    classes: Sequence[str] = ()  # as in ``Dataset``, as is ``unused``
    unused: Mapping[str, int] = MappingProxyType({})
    standardise: bool = True

    @classmethod
    def named(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the arrays that have the names of ``NAMES``, and what is said next to them."""
        names = next((names for names in NAMES if names[0] in arrays), NAMES[0])
        if missing := [name for name in names if name not in arrays]:
            raise DatasetError(f"has no {' and no '.join(missing)}")
        return cls.beside([arrays[name] for name in names], arrays, names)

    @classmethod
    def beside(cls, given: Sequence[Any], arrays: Mapping[str, Any], names: Collection[str]) -> Self:
        """Return the arrays that are given, with what is said of them next to those of some names."""
        unused, standardise = unused_images(arrays, names), np.asarray(arrays.get("standardise", True))
        if standardise.shape or standardise.dtype != np.bool_:
            raise DatasetError(f"its standardise must be true or false, not {arrays['standardise']!r}")
        return cls(given, channels_beside(arrays), unused=unused, standardise=bool(standardise))


def unused_images(arrays: Mapping[str, Any], names: Collection[str]) -> dict[str, int]:
    """Return how many images there are in arrays of other names, such as those for validation."""
    others = {name: np.asarray(array) for name, array in arrays.items() if name not in names}
    return {name: len(it) for name, it in others.items() if it.ndim > 2 or (it.ndim == 2 and it.dtype.kind == "f")}


def channels_beside(arrays: Mapping[str, Any]) -> str | None:
    """Return what is said of channels next to the arrays."""
    value = str(arrays["channels"]) if "channels" in arrays else None
    if value not in (None, "first", "last"):
        raise DatasetError(f"its channels must be 'first' or 'last', not {value!r}")
    return value


def problem(plugin: Any) -> str | None:
    """Return why something cannot be a data set, as far as can be seen without calling it."""
    return None if inspect.isroutine(plugin) else f"is {plugin!r}; a data set is a function that returns its arrays"


@dataclass(frozen=True)
class OwnDataset(Source):
    """A data set that a user's function returns: its docstring's first line describes it.

    Attributes:
        name: the name it is registered under.
        function: returns training images, training labels, test images and test labels, or a mapping of these by
            their ``NAMES``. Images are uint8 [n, channels, height, width], [n, height, width, channels], or [n, height,
            width] for one channel, or float32 [n, features]; labels are integers [n] from 0 to L - 1, each of which
            some training image has.
    """

    name: str
    function: Callable[[], Any]

    @property
    def info(self) -> DatasetInfo:
        return (_kept(self.name, self.function) or [self.load(Path(), download=False)])[0].info

    def load(self, root: Path, *, download: bool) -> Dataset:
        """Call the function, even if it was called before: what it reads may have changed since, as in a notebook."""
        kept, loaded = _kept(self.name, self.function), _load(self.name, self.function)
        kept[:] = kept if kept and kept[0].digests == loaded.digests else [loaded]
        return kept[0]


@lru_cache(maxsize=KEPT)
def _kept(*_source: object) -> list[Dataset]:
    """Return a list for what was last loaded from a source, empty at first."""
    return []


def _load(name: str, function: Callable[[], Any]) -> Dataset:
    code = getattr(inspect.unwrap(function), "__code__", None)  # none where it is not written in Python
    what = f"data set {name!r} ({code.co_filename}:{code.co_firstlineno})" if code else f"data set {name!r}"
    try:
        returned = function()
    except (Exception, SystemExit) as error:
        raise DatasetError(f"{what}: raised {blame(error)}") from error
    try:
        return dataset_of(name, summary(function), "plug-in", _raw(returned))
    except DatasetError as error:
        raise DatasetError(f"{what}: {error}") from error


def _raw(returned: object) -> RawArrays:
    if isinstance(returned, Mapping):
        return RawArrays.named(returned)
    if isinstance(returned, tuple | list) and len(returned) == 4:
        return RawArrays(returned)
    kind = f"{len(returned)} things" if isinstance(returned, tuple | list) else f"a {type(returned).__name__}"
    raise DatasetError(
        f"must return four arrays (training images, training labels, test images, test labels), not {kind}"
    )


def dataset_of(
    name: str,
    description: str,
    source: Literal["plug-in", "file"],
    raw: RawArrays,
) -> Dataset:
    """Return the data set that the arrays make. It is never official: only its user knows its digests."""
    given = raw.arrays
    images, test_images = _images("training", given[0]), _images("test", given[2])
    channels = ""
    if images.ndim == test_images.ndim == 4:
        channels = raw.channels or _channels(images.shape)
    images, test_images = (_channels_first(part, channels) for part in (images, test_images))
    labels, test_labels = _labels("training", given[1], len(images)), _labels("test", given[3], len(test_images))
    shape, test_shape = _shape(images), _shape(test_images)
    if (type(shape), shape) != (type(test_shape), test_shape):
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
        standardise=raw.standardise,
    )
    arrays = images, labels, test_images, test_labels
    how = "" if raw.standardise else ", as they are"  # the same arrays, but models get other numbers
    digests = {key: _digest(part, how) for key, part in zip(ARRAY_NAMES, arrays, strict=True)}
    if raw.standardise and isinstance(shape, FeatureShape):
        images, test_images = _standardised(images, test_images)
        arrays = images, labels, test_images, test_labels
    return Dataset.of(known, arrays, digests, {}, classes=raw.classes, channels=channels, unused=raw.unused)


def _images(split: str, raw: Any) -> Pixels:
    array = _array(f"{split} images", raw)
    if array.dtype == np.float32 and array.ndim == 2 and 0 not in array.shape:
        if not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise DatasetError(f"its {split} features hold {array[row, column]} (row {row}, column {column}, from 0)")
        return array
    if array.dtype != np.uint8 or array.ndim not in (3, 4) or 0 in array.shape:
        raise DatasetError(
            f"its {split} images must be uint8 [n, channels, height, width], or [n, height, width] for one channel, "
            f"or float32 [n, features], with no dimension 0, not {array.dtype} {list(array.shape)}"
        )
    return array


def _shape(images: Pixels) -> Shape:
    return (Shape if images.dtype == np.uint8 else FeatureShape)(*images.shape[1:])


def _standardised(train: Pixels, test: Pixels) -> tuple[Float32Array, Float32Array]:
    """Return features less their means over the training rows, in standard deviations; a constant one becomes 0."""
    parts = np.empty_like(train, np.float32), np.empty_like(test, np.float32)
    for column in range(train.shape[-1]):  # one at a time, as in double precision they take twice the memory
        values = train[..., column].ravel().astype(np.float64)
        mean = float(folded_sums(values)) / len(values)
        spread = math.sqrt(float(folded_sums((values - mean) ** 2)) / len(values))
        if values.min() == values.max():  # whose mean may be rounded
            mean, spread = float(values[0]), 1.0
        for part, to in zip((train, test), parts, strict=True):
            to[..., column] = (part[..., column].astype(np.float64) - mean) / spread
    return parts


def _channels(shape: tuple[int, ...]) -> str:
    """Return where the channels stand in images of four dimensions: ``first`` or ``last``.

    There are up to four of them, or the other two dimensions are the sides of a square.
    """
    _, a, b, c = shape
    first, last = a <= MOST_CHANNELS or b == c > 1, c <= MOST_CHANNELS or a == b > 1
    if first == last:
        raise DatasetError(
            f"its images have the shape {list(shape)}, which leaves open whether channels come first, for images of "
            f"{Shape(a, b, c)}, or last, for images of {Shape(c, a, b)}; say channels = 'first' or 'last' next to the "
            "arrays (docs/data.md)"
        )
    return "first" if first else "last"


def _channels_first(images: Pixels, channels: str) -> Pixels:
    """Return images [n, channels, height, width]; features as the one row of an image."""
    if images.ndim < 4:
        return images.reshape(len(images), 1, -1, images.shape[-1])
    return images.transpose(0, 3, 1, 2).copy() if channels == "last" else images


def _labels(split: str, raw: Any, count: int) -> Labels:
    array = _array(f"{split} labels", raw)
    if array.shape == (count, 1):  # as Keras and MedMNIST have them
        array = array[:, 0]
    if array.dtype.kind not in "iu" or array.shape != (count,):
        raise DatasetError(f"its {split} labels must be integers [{count}], not {array.dtype} {list(array.shape)}")
    if array.min() < 0 or array.max() >= MOST_LABELS:
        raise DatasetError(
            f"its {split} labels must be from 0 to {MOST_LABELS - 1}, not from {array.min()} to {array.max()}"
        )
    return array.astype(np.uint8)


def _array(what: str, raw: Any) -> AnyArray:
    """Return a contiguous array, or a view of one: that it becomes read-only must not change the user's own."""
    try:
        return np.ascontiguousarray(raw).view()
    except Exception as error:  # of ragged lists, tensors on a GPU
        raise DatasetError(f"its {what} cannot be read as an array: {error}") from error


def _digest(array: Pixels, how: str) -> str:
    """Return the SHA-256 of an array's shape and content: the same bytes in another shape are other images."""
    digest = hashlib.sha256(f"{list(array.shape)}{how}\n".encode())
    digest.update(array.tobytes())
    return digest.hexdigest()
