"""``digits``: scikit-learn's real handwritten digits, which come with it and need no network."""

import numpy as np
import numpy.typing as npt

Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.uint8]]

TEST_PART = 5
"""Every fifth image of a label is for testing."""
_ENLARGE, _BORDER, _LEVELS = 3, 2, 16


def digits() -> Arrays:
    """Return the 1,797 digits of 8x8 pixels, enlarged to 28x28: train images and labels, test images and labels."""
    from sklearn.datasets import load_digits

    source = load_digits()
    images, labels = _enlarge(source.images.astype(np.int64)), source.target.astype(np.uint8)
    place = np.empty(len(labels), dtype=np.int64)
    for label in range(10):
        of_label = np.flatnonzero(labels == label)
        place[of_label] = np.arange(len(of_label))
    test = place % TEST_PART == TEST_PART - 1
    return images[~test], labels[~test], images[test], labels[test]


def _enlarge(images: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Interpolate [n, 8, 8] images of 17 levels to [n, 28, 28] bytes, bilinearly, with an empty border.

    In whole numbers, so that every machine makes the same bytes.
    """
    side = images.shape[1] * _ENLARGE
    weights = np.zeros((side, images.shape[1]), dtype=np.int64)
    for target in range(side):
        # The target's centre lies at (2 * target + 1) / 6 - 1 / 2 source pixels, so weights are sixths.
        low, part = divmod(2 * target + 1 - _ENLARGE, 2 * _ENLARGE)
        for source, weight in ((low, 2 * _ENLARGE - part), (low + 1, part)):
            weights[target, min(max(source, 0), images.shape[1] - 1)] += weight
    scaled = np.einsum("ty,nyx,sx->nts", weights, images, weights)
    whole = (2 * _ENLARGE) ** 2 * _LEVELS
    pixels = ((2 * 255 * scaled + whole) // (2 * whole)).astype(np.uint8)
    return np.pad(pixels, ((0, 0), (_BORDER, _BORDER), (_BORDER, _BORDER)))
