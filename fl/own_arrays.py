"""The arrays of a data set of a user's own: what they must be, and the data set that they make.

Number of labels, shape of the images, sizes and the rarest label follow from the arrays, and so they cannot contradict
them. The arrays come from a function (``fl.own_dataset``) or from files (``fl.own_files``).
"""

import hashlib
from typing import Any, Literal

import numpy as np

from fl.arrays import AnyArray, ByteArray, Labels, Pixels
from fl.blame import Foreign, describe
from fl.dataset import ARRAY_NAMES, Arrays, Dataset, DatasetError, DatasetInfo, Shape

MOST_LABELS = 256  # labels are stored in one byte


def dataset_of(name: str, description: str, source: Literal["plug-in", "file"], arrays: Arrays) -> Dataset:
    """Return the data set that checked arrays make. It is never official: nobody else knows its digests."""
    images, labels = arrays[:2]
    found = DatasetInfo(
        name=name,
        description=description,
        labels=int(labels.max()) + 1,
        shape=Shape(*images.shape[1:]),
        train_size=len(images),
        test_size=len(arrays[2]),
        rarest_label=int(np.bincount(labels).min()),
        source=source,
        licence="unknown",
    )
    digests = {key: _digest(array) for key, array in zip(ARRAY_NAMES, arrays, strict=True)}
    return Dataset.of(found, arrays, digests, known={})


def checked(
    found: tuple[Any, ...],  # training images, training labels, test images, test labels, as a user gives them
) -> Arrays:
    """Return the arrays in the form that all data sets have."""
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
    # Ragged lists, tensors on a GPU, an __array__ that raises.
    with Foreign(lambda error: DatasetError(f"its {what} cannot be read as an array: {describe(error)}")):
        return np.ascontiguousarray(found).view()


def _digest(array: ByteArray) -> str:
    """Return the SHA-256 of an array's shape and content: the same bytes in another shape are other images."""
    digest = hashlib.sha256(f"{list(array.shape)}\n".encode())
    digest.update(array.tobytes())
    return digest.hexdigest()
