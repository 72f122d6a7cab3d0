"""The embedded data sets: enlarged real digits, and the drawn ones."""

import hashlib

import numpy as np
import pytest

from fl.data import embedded, strokes
from fl.data.embedded import OFFICIAL

NAMES = ("train-images", "train-labels", "test-images", "test-labels")


@pytest.mark.slow
@pytest.mark.parametrize("name", strokes.STYLES)
def test_a_drawn_set_has_the_same_bytes_everywhere(name: str) -> None:
    """If this fails, results on the set are no longer comparable: don't just update the digests."""
    arrays = strokes.draw(name)
    assert {key: hashlib.sha256(a.tobytes()).hexdigest() for key, a in zip(NAMES, arrays, strict=True)} == OFFICIAL[
        name
    ]
    train_images, train_labels, test_images, test_labels = arrays
    assert (train_images.shape, test_images.shape) == ((12_000, 28, 28), (2_000, 28, 28))
    assert {array.dtype for array in arrays} == {np.dtype(np.uint8)}
    # As many images of each label.
    assert np.bincount(train_labels).tolist() == [1_200] * 10
    assert np.bincount(test_labels).tolist() == [200] * 10
    # No image twice, so that none of the test images has been trained on.
    everything = np.concatenate([train_images, test_images]).reshape(-1, 784)
    assert len({image.tobytes() for image in everything}) == 14_000


def test_the_first_images_do_not_depend_on_how_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strokes, "TRAIN_SIZE", 2_000)
    monkeypatch.setattr(strokes, "TEST_SIZE", 1_000)
    few = strokes.draw("strokes")
    monkeypatch.setattr(strokes, "TRAIN_SIZE", 3_000)
    np.testing.assert_array_equal(strokes.draw("strokes")[0][:2_000], few[0])


@pytest.mark.parametrize("table", [embedded.TABLE, "elsewhere.csv"], ids=["read", "through scikit-learn"])
def test_the_real_digits_have_the_same_bytes_everywhere(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "TABLE", table)
    arrays = embedded.digits()
    assert {key: hashlib.sha256(a.tobytes()).hexdigest() for key, a in zip(NAMES, arrays, strict=True)} == (
        OFFICIAL["digits"]
    )
    train_images, train_labels, test_images, test_labels = arrays
    assert (train_images.shape, test_images.shape) == ((1_438, 28, 28), (359, 28, 28))
    # The split is the same share of each label: a fifth.
    assert np.bincount(train_labels).tolist() == [142, 146, 142, 146, 145, 146, 145, 143, 139, 144]
    assert np.bincount(test_labels).tolist() == [36, 36, 35, 37, 36, 36, 36, 36, 35, 36]
    assert not train_images[:, :2].any()  # a border
