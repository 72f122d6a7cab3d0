"""The embedded data sets: enlarged real digits, and the drawn ones."""

import hashlib

import numpy as np
import pytest

from fl.data import digits, strokes
from fl.data.digests import OFFICIAL

NAMES = ("train-images", "train-labels", "test-images", "test-labels")


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


def test_paths_are_lines_and_curves() -> None:
    assert list(strokes.segments("M1 2 L3 4 M5 6 L5 9")) == [((1, 2), (3, 4)), ((5, 6), (5, 9))]
    curve = list(strokes.segments("M0 0 Q8 0 8 8"))
    assert (curve[0][0], curve[-1][1]) == ((0, 0), (8, 8))
    assert len(curve) == 8
    assert curve[3][1] == (6, 2)  # half-way: (start + 2 * control + end) / 4


def test_a_table_holds_distances_to_the_nearest_stroke() -> None:
    table = strokes.distance_table("M0 10 L20 10")
    centre = (strokes.MARGIN + 10) * strokes.CELLS_PER_UNIT  # the cell below and right of (10, 10)
    # Cells are a quarter of a unit, their centres an eighth off; distances count sixteenths.
    assert table[centre : centre + 3, centre].tolist() == [2, 6, 10]
    assert table[centre - 1, centre] == 2
    assert table[0, 0] == 255  # 17.9 units along, 8 past the end: far


@pytest.mark.parametrize("ways", strokes.DIGITS + strokes.LETTERS)
def test_glyphs_stay_on_their_paper(ways: tuple[str, ...]) -> None:
    for path in ways:
        points = np.array(list(strokes.segments(path)))
        assert points.min() >= 0
        assert points.max() <= strokes.PAPER


def test_random_numbers_are_spread_as_they_say() -> None:
    bits = strokes.Bits("test")
    uniform = bits.between(-2.0, 3.0, 100_000)
    assert -2.0 <= uniform.min() < -1.999
    assert 2.999 < uniform.max() < 3.0
    assert np.bincount(bits.below(4, 100_000)).min() > 24_000
    bell = bits.bell(500, 200)
    assert bell.shape == (500, 200)
    assert abs(bell.mean()) < 2.0
    assert bell.std() == pytest.approx(strokes.BELL, rel=0.01)


@pytest.mark.parametrize("table", [digits.TABLE, "elsewhere.csv"], ids=["read", "through scikit-learn"])
def test_the_real_digits_have_the_same_bytes_everywhere(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits, "TABLE", table)
    arrays = digits.digits()
    assert {key: hashlib.sha256(a.tobytes()).hexdigest() for key, a in zip(NAMES, arrays, strict=True)} == (
        OFFICIAL["digits"]
    )
    train_images, train_labels, test_images, test_labels = arrays
    assert (train_images.shape, test_images.shape) == ((1_438, 28, 28), (359, 28, 28))
    # The split is the same share of each label: a fifth.
    assert np.bincount(train_labels).tolist() == [142, 146, 142, 146, 145, 146, 145, 143, 139, 144]
    assert np.bincount(test_labels).tolist() == [36, 36, 35, 37, 36, 36, 36, 36, 35, 36]
    assert not train_images[:, :2].any()  # a border


def test_enlarging_interpolates_between_pixels() -> None:
    # By hand, over a row of 0, 16, 4: thirds of the way from each pixel to the next, and to the empty border.
    row = np.array([[[0, 16, 4]]])
    thirds = [0, 0, 16, 32, 48, 36, 24, 12, 8]
    # Upwards and downwards is border: two thirds, all, two thirds. Of 9 * 16 in all; halves are rounded up.
    expected = [[int(255 * share * value / 144 + 0.5) for value in thirds] for share in (2, 3, 2)]
    assert digits.enlarge(row)[0].tolist() == expected
