"""A data set: images and labels as arrays, and a description of them."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from fl.arrays import IntArray, Labels, Pixels
from flmarket.core.errors import InputError

Arrays = tuple[Pixels, Labels, Pixels, Labels]
"""Training images [n, C, H, W], training labels [n], test images [m, C, H, W], test labels [m]."""

ARRAY_NAMES = ("train-images", "train-labels", "test-images", "test-labels")
_STATISTICS_CHUNK = 1 << 15  # pixels, so that the sum of their squares fits 32 bits


class DatasetError(InputError):
    """A data set cannot be used; the message names it, its file or folder if it has one, and says what to do."""


class Shape(NamedTuple):
    """The size of an image: channels (1 for grey, 3 for colour), then height and width in pixels."""

    channels: int
    height: int
    width: int

    def __str__(self) -> str:
        return f"{self.channels} x {self.height} x {self.width}"


class FeatureShape(Shape):
    """The size of a row of features that are no image; to what trains, an image one pixel high."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.width} features"


@dataclass(frozen=True)
class DatasetInfo:
    """The description of a data set: all that is known without its images.

    Attributes:
        name: the name by which scenarios call it.
        description: what it shows, and how hard it is.
        labels: how many there are (L).
        shape: the shape of every image.
        train_size, test_size: images in each split.
        rarest_label: training images of the label that has the fewest.
        source: ``embedded`` needs no network; ``download`` is fetched once; ``plug-in`` and ``file`` are a user's own.
        licence: the licence of the images.
        standardise: whether models get what it holds less its mean, in standard deviations.
    """

    name: str
    description: str
    labels: int
    shape: Shape
    train_size: int
    test_size: int
    rarest_label: int
    source: Literal["embedded", "download", "plug-in", "file"]
    licence: str
    standardise: bool = True


def short_digest(digests: Mapping[str, str]) -> str:
    """Return eight digits that tell a data set's images from those of another one with the same name."""
    return hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()[:8]


def _listed(counts: Mapping[str, int]) -> str:
    if len({*counts.values()}) == 1:
        return f"{next(iter(counts.values())):,} of each of {len(counts)} classes"
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


@dataclass(frozen=True, eq=False)
class Dataset:
    """A loaded data set. All arrays are read-only.

    Arrays of images have four dimensions for every data set, also for those of one channel: nothing that trains needs a
    special case for grey images.

    Attributes:
        info: with the sizes of what was loaded, which for an unofficial copy may differ from the official ones.
        train_images, train_labels: [n, C, H, W] and [n]; labels count from 0. Features are standardised already, unless
            that is turned off.
        test_images, test_labels: [m, C, H, W] and [m].
        digests: SHA-256 of each uncompressed file, or of each array that was generated or is a user's own.
        official: all digests are known to be right.
        classes: the name of each label, where it has one.
        channels: where they stood in a user's own images of four dimensions, ``first`` or ``last``; empty for others.
        unused: the images of each split that is neither trained nor tested on.
    """

    info: DatasetInfo
    train_images: Pixels
    train_labels: Labels
    test_images: Pixels
    test_labels: Labels
    digests: Mapping[str, str]
    official: bool
    classes: Sequence[str] = ()
    channels: str = ""
    unused: Mapping[str, int] = field(default_factory=dict)

    @property
    def images(self) -> dict[str, dict[str, int]]:
        """The number of images by split and class."""
        names = self.classes or [str(label) for label in range(self.info.labels)]
        splits = {"train": self.train_labels, "test": self.test_labels}
        return {
            split: dict(zip(names, np.bincount(labels, minlength=len(names)).tolist(), strict=True))
            for split, labels in splits.items()
        }

    @property
    def sizes(self) -> str:
        """The number of images by split and class, and their shape, in words."""
        tabular = isinstance(self.info.shape, FeatureShape)
        train, test = (
            f"{sum(counts.values()):,} {split} {'rows' if tabular else 'images'} ({_listed(counts)})"
            for split, counts in zip(("training", "test"), self.images.values(), strict=True)
        )
        order = f", channels {self.channels}" if self.channels else ""
        unused = "".join(f"; {count:,} of {name} are not used" for name, count in self.unused.items())
        each = f"{self.info.shape}" if tabular else f"{self.info.shape} (channels x height x width{order})"
        return f"{train}, {test}, each {each}, {'standardised' if self.info.standardise else 'as they are'}{unused}"

    @property
    def digest(self) -> str:
        """As ``short_digest``."""
        return short_digest(self.digests)

    @classmethod
    def of(
        cls, info: DatasetInfo, arrays: Arrays, digests: Mapping[str, str], known: Mapping[str, str], **further: Any
    ) -> Self:
        """Return the data set of these arrays, which become read-only.

        Args:
            info: what is known of the data set; its sizes are replaced by those of the arrays.
            arrays: one channel may be left out: images [n, H, W].
            digests: see the attribute.
            known: the digests that are known to be right, by the same names.
            further: the attributes ``classes``, ``channels`` and ``unused``.
        """
        images, labels, test_images, test_labels = arrays
        images, test_images = (part.reshape(len(part), *info.shape) for part in (images, test_images))
        for array in (images, labels, test_images, test_labels):
            array.setflags(write=False)
        counts = np.bincount(labels, minlength=info.labels)
        info = replace(info, train_size=len(labels), test_size=len(test_labels), rarest_label=int(counts.min()))
        official = all(known.get(key) == digest for key, digest in digests.items())
        return cls(info, images, labels, test_images, test_labels, MappingProxyType(dict(digests)), official, **further)

    @cached_property
    def by_label(self) -> tuple[IntArray, ...]:
        """For each label, the indices of its images in the training split, ascending."""
        pools = tuple(np.flatnonzero(self.train_labels == label) for label in range(self.info.labels))
        for pool in pools:
            pool.setflags(write=False)
        return pools

    @cached_property
    def _mean_and_deviation(self) -> tuple[float, float]:
        """Mean and standard deviation of the training split's pixels, from exact sums of integers.

        0 and 1 of what models get as it is stored.
        """
        if not self.info.standardise or isinstance(self.info.shape, FeatureShape):
            return 0.0, 1.0
        total = squares = 0
        everything = self.train_images.reshape(-1)
        for start in range(0, everything.size, _STATISTICS_CHUNK):
            pixels = everything[start : start + _STATISTICS_CHUNK].astype(np.int32)
            total += int(pixels.sum())
            squares += int(pixels @ pixels)
        count = everything.size
        return total / count, math.sqrt((count * squares - total * total) / count**2)

    @property
    def scale(self) -> float:
        """What models get is ``pixel * scale + offset``: of mean 0 and deviation 1 over the training split's pixels."""
        return 1.0 / self._mean_and_deviation[1]

    @property
    def offset(self) -> float:
        """See ``scale``."""
        mean, deviation = self._mean_and_deviation
        return -mean / deviation


class Source(ABC):
    """The source of a data set."""

    @property
    @abstractmethod
    def info(self) -> DatasetInfo:
        """The description of the data set.

        Raises:
            DatasetError: nothing is known without loading it, and it cannot be loaded.
        """

    @property
    def summary(self) -> str:
        """Its description in one line, for listings of plug-ins."""
        return self.info.description

    def present(self, root: Path) -> bool:
        """Return whether it can be loaded without a download, as far as names of files in ``root`` tell."""
        return True

    @abstractmethod
    def load(self, root: Path, *, download: bool) -> Dataset:
        """Return the data set.

        Args:
            root: the folder of downloaded files.
            download: whether missing files may be downloaded.

        Raises:
            DatasetError: it cannot be loaded; says why.
        """
