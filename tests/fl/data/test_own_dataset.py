"""Data sets of a user's own: a function that returns arrays, what follows from them, and what can be wrong with it."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fl.data.dataset import FeatureShape, Shape
from fl.data.own_dataset import NAMES
from fl.data.registry import BUILTIN, DATASETS, DatasetError, dataset, info, load
from flmarket.core.plugins import PluginError, summary

LABELS = [0, 1, 2, 0, 0, 1]
GREY = np.arange(6 * 4 * 5).reshape(6, 4, 5).astype(np.uint8)
COLOUR = np.arange(6 * 3 * 4 * 5).reshape(6, 3, 4, 5).astype(np.uint8)


def parts(
    images: Any = COLOUR, labels: Any = LABELS, test_images: Any = COLOUR[:2], test_labels: Any = LABELS[:2]
) -> tuple[Any, Any, Any, Any]:
    return images, labels, test_images, test_labels


def test_all_that_is_known_of_a_data_set_follows_from_its_arrays() -> None:
    @dataset("shapes")
    def shapes() -> Any:
        """Circles and squares, in colour.

        Drawn by hand.
        """
        return parts()

    known = info("shapes")
    assert (known.name, known.description) == ("shapes", "Circles and squares, in colour.")
    assert (known.labels, known.shape, known.train_size, known.test_size) == (3, Shape(3, 4, 5), 6, 2)
    assert known.rarest_label == 1  # label 2
    assert known.source == "plug-in"
    loaded = load("shapes")
    assert loaded.info == known
    np.testing.assert_array_equal(loaded.train_images, COLOUR)
    np.testing.assert_array_equal(loaded.test_images, COLOUR[:2])
    assert (loaded.train_labels.tolist(), loaded.test_labels.tolist()) == (LABELS, [0, 1])
    assert {array.dtype for array in (loaded.train_images, loaded.train_labels)} == {np.dtype(np.uint8)}
    assert [pool.tolist() for pool in loaded.by_label] == [[0, 3, 4], [1, 5], [2]]


def test_images_of_one_channel_may_leave_it_out() -> None:
    dataset("grey")(lambda: parts(images=GREY, test_images=GREY[:2]))
    assert info("grey").shape == Shape(1, 4, 5)
    assert load("grey").train_images.shape == (6, 1, 4, 5)


SHAPES: dict[str, tuple[tuple[int, ...], Shape]] = {
    "grey, channels last": ((28, 28, 1), Shape(1, 28, 28)),
    "grey, channels last, not square": ((20, 30, 1), Shape(1, 20, 30)),
    "two channels last": ((8, 8, 2), Shape(2, 8, 8)),
    "colour, channels last": ((9, 7, 3), Shape(3, 9, 7)),
    "many channels last": ((16, 16, 13), Shape(13, 16, 16)),
    "grey, channels first": ((1, 20, 30), Shape(1, 20, 30)),
    "colour, channels first": ((3, 32, 32), Shape(3, 32, 32)),
    "many channels first": ((13, 16, 16), Shape(13, 16, 16)),
    "a row of numbers": ((1, 1, 60), Shape(1, 1, 60)),
}


def drawn(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).integers(0, 256, (6, *shape), np.uint8)


@pytest.mark.parametrize(("given", "expected"), SHAPES.values(), ids=SHAPES)
def test_the_whole_shape_says_where_channels_stand(given: tuple[int, ...], expected: Shape) -> None:
    images = drawn(given)
    dataset("own")(lambda: parts(images=images, test_images=images[:2]))
    loaded = load("own")
    order = "first" if given == tuple(expected) else "last"
    assert (loaded.info.shape, loaded.channels) == (expected, order)
    assert f"(channels x height x width, channels {order})" in loaded.sizes
    np.testing.assert_array_equal(loaded.train_images, images if order == "first" else images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("shape", [(3, 8, 3), (16, 16, 16), (4, 4, 4), (1, 28, 1), (20, 30, 13), (3, 3, 32)], ids=str)
def test_a_shape_that_leaves_channels_open_is_refused_with_the_key_that_settles_it(shape: tuple[int, ...]) -> None:
    images = drawn(shape)
    dataset("own")(lambda: parts(images=images, test_images=images[:2]))
    with pytest.raises(DatasetError, match="say channels = 'first' or 'last' next to the arrays"):
        load("own")
    for order, expected in (("first", shape), ("last", (shape[2], *shape[:2]))):
        named = dict(zip(NAMES[0], parts(images=images, test_images=images[:2]), strict=True)) | {"channels": order}
        dataset("own")(lambda named=named: named)
        assert info("own").shape == expected


BY_NAME = {"x_train": COLOUR, "y_train": np.array(LABELS)[:, np.newaxis], "x_test": COLOUR[:2], "y_test": LABELS[:2]}


def test_arrays_by_the_names_that_keras_gives_them() -> None:
    dataset("own")(lambda: BY_NAME)
    loaded = load("own")
    assert loaded.images == {"train": {"0": 3, "1": 2, "2": 1}, "test": {"0": 1, "1": 1, "2": 0}}
    assert loaded.train_labels.tolist() == LABELS


@pytest.mark.parametrize("integers", [list, np.int64, np.uint8, np.int8])
def test_labels_are_integers_of_any_kind(integers: Any) -> None:
    labels = list(LABELS) if integers is list else np.array(LABELS, dtype=integers)
    dataset("own")(lambda: parts(labels=labels))
    assert load("own").train_labels.tolist() == LABELS


def test_what_a_function_returns_is_shared_until_it_returns_something_else() -> None:
    calls = []
    images = COLOUR.copy()

    @dataset("own")
    def own() -> Any:
        calls.append(1)
        return parts(images=images)

    assert info("own").train_size == info("own").train_size == 6
    assert len(calls) == 1
    before = load("own")
    assert load("own") is before
    assert not before.train_images.flags.writeable
    images[0] = 0  # as in a notebook; or a file that the function reads was replaced
    after = load("own")
    assert after.digest != before.digest
    assert after.train_images[0].max() == 0


def test_a_function_that_is_registered_anew_is_called_anew() -> None:
    dataset("own")(lambda: parts())
    assert info("own").train_size == 6
    dataset("own")(lambda: parts(images=COLOUR[:5], labels=LABELS[:5]))  # a notebook's cell that was changed
    assert info("own").train_size == 5


def test_digests_tell_all_arrays_apart_and_are_nobodys_official_ones() -> None:
    def digests(**changed: Any) -> dict[str, str]:
        dataset("own")(lambda: parts(**changed))
        loaded = load("own")
        assert not loaded.official
        return dict(loaded.digests)

    first = digests()
    assert list(first) == ["train-images", "train-labels", "test-images", "test-labels"]
    assert all(len(digest) == 64 for digest in first.values())
    assert digests() == first
    other = COLOUR.copy()
    other[3, 0, 0, 0] += 1
    assert {key for key, digest in digests(images=other).items() if digest != first[key]} == {"train-images"}
    # The same bytes as images of another shape are other images.
    turned = {"images": COLOUR.reshape(6, 3, 2, 10), "test_images": COLOUR[:2].reshape(2, 3, 2, 10)}
    assert {key for key, digest in digests(**turned).items() if digest != first[key]} == {"train-images", "test-images"}


ROWS = np.array([[0, 5], [2, 5], [0, 5], [2, 5], [0, 5], [2, 5]], dtype=np.float32)


def features(**beside: Any) -> dict[str, Any]:
    return dict(zip(NAMES[1], parts(images=ROWS, test_images=ROWS[:2] + 1), strict=True)) | beside


def test_features_are_standardised_one_by_one_by_the_training_rows() -> None:
    dataset("table")(features)
    loaded = load("table")
    assert (loaded.info.shape, str(loaded.info.shape)) == (FeatureShape(1, 1, 2), "2 features")
    assert loaded.train_images.dtype == np.float32
    assert loaded.train_images.reshape(6, 2).tolist() == [[-1, 0], [1, 0]] * 3  # mean 1, deviation 1; all equal
    assert loaded.test_images.reshape(2, 2).tolist() == [[0, 1], [2, 1]]
    assert (loaded.scale, loaded.offset) == (1.0, 0.0)
    assert loaded.sizes == (
        "6 training rows (0: 3, 1: 2, 2: 1), 2 test rows (0: 1, 1: 1, 2: 0), each 2 features, standardised"
    )
    assert ROWS[0, 0] == 0
    assert ROWS.flags.writeable


@given(
    arrays(np.float32, (6, 2), elements=st.floats(-1e6, 1e6, width=32)).filter(lambda rows: np.ptp(rows, 0).min() > 1)
)
def test_whatever_features_are_given_their_mean_is_0_and_their_deviation_1(rows: Any) -> None:
    dataset("table")(lambda: parts(images=rows, test_images=rows[:2]))
    train = load("table").train_images.reshape(6, 2).astype(np.float64)
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(train.std(0), 1, atol=1e-6)


@pytest.mark.parametrize(("given_", "stored"), [(features(), ROWS), (BY_NAME, COLOUR)], ids=["features", "images"])
def test_a_data_set_may_say_that_it_is_learned_as_it_is(given_: dict[str, Any], stored: Any) -> None:
    dataset("table")(lambda: given_)
    standardised = load("table")
    dataset("table")(lambda: given_ | {"standardise": False})
    loaded = load("table")
    np.testing.assert_array_equal(loaded.train_images.reshape(stored.shape), stored)
    assert (loaded.scale, loaded.offset) == (1.0, 0.0)
    assert loaded.sizes.endswith(", as they are")
    assert not {*loaded.digests.values()} & {*standardised.digests.values()}  # so that runs are not mixed


def fails() -> Any:
    raise FileNotFoundError(2, "No such file or directory", "cats.npz")


NOT_FOUR = "must return four arrays (training images, training labels, test images, test labels), not "
LABELLED = "its training labels must be "
NUMBERED = f"{LABELLED}numbered from 0 without a gap, at least two; they are "


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (fails, "raised FileNotFoundError: [Errno 2] No such file or directory: 'cats.npz'"),
        (lambda: None, f"{NOT_FOUR}a NoneType"),
        (lambda: (COLOUR, LABELS), f"{NOT_FOUR}2 things"),
        (lambda: parts(images=COLOUR / 255), "its training images must be uint8 [n, channels, height, width], or "),
        (lambda: parts(test_images=COLOUR[:2].astype(np.int32)), "its test images must be uint8 [n, channels"),
        (lambda: parts(images=COLOUR.reshape(6, 60)), "its training images must be uint8 [n, channels"),
        (lambda: parts(test_images=COLOUR[:0], test_labels=[]), "its test images must be uint8 [n, channels"),
        (lambda: {"x_train": COLOUR, "y_train": LABELS}, "has no x_test and no y_test"),
        (lambda: {"x": COLOUR}, "has no train_images and no train_labels and no test_images and no test_labels"),
        (lambda: BY_NAME | {"standardise": 0}, "its standardise must be true or false, not 0"),
        (lambda: BY_NAME | {"channels": "middle"}, "its channels must be 'first' or 'last', not 'middle'"),
        (lambda: parts(test_images=GREY[:2]), "its training images are 3 x 4 x 5 and its test images 1 x 4 x 5; "),
        (lambda: parts(images=np.full_like(COLOUR, 7)), "its training images are blank: all pixels are equal"),
        (
            lambda: parts(images=ROWS, test_images=ROWS[:2, :1]),
            "its training images are 2 features and its test images 1 ",
        ),
        (
            lambda: parts(images=ROWS, test_images=COLOUR[:2]),
            "its training images are 2 features and its test images 3 x ",
        ),
        (
            lambda: parts(images=ROWS.astype(np.float64)),
            "its training images must be uint8 [n, channels, height, width], ",
        ),
        (
            lambda: parts(images=ROWS + np.float32([np.nan, 0])),
            "its training features hold nan (row 0, column 0, from 0)",
        ),
        (lambda: features(x_test=np.float32([[0, 1], [2, -np.inf]])), "its test features hold -inf (row 1, column 1, "),
        (lambda: parts(images=[[[1, 2]], [[1]]]), "its training images cannot be read as an array: setting an array "),
        (lambda: parts(labels=np.array(LABELS) / 2), f"{LABELLED}integers [6], not float64 [6]"),
        (lambda: parts(labels=list("abcdef")), f"{LABELLED}integers [6], not <U1 [6]"),
        (lambda: parts(labels=LABELS[:4]), f"{LABELLED}integers [6], not int64 [4]"),
        (lambda: parts(labels=np.eye(6, 3, dtype=np.uint8)), f"{LABELLED}integers [6], not uint8 [6, 3]"),
        (lambda: parts(labels=[-1, 1, 2, 0, 0, 1]), f"{LABELLED}from 0 to 255, not from -1 to 2"),
        (lambda: parts(test_labels=[0, 256]), "its test labels must be from 0 to 255, not from 0 to 256"),
        (lambda: parts(labels=[1, 2, 3, 1, 1, 2]), f"{NUMBERED}1, 2, 3"),
        (lambda: parts(labels=[0] * 6), f"{NUMBERED}0"),
        (lambda: parts(test_labels=[0, 3]), "a test image has the label 3, which no training image has"),
    ],
)
def test_a_wrong_data_set_is_named_with_its_function_and_what_is_wrong(found: Callable[[], Any], problem: str) -> None:
    dataset("cats")(found)
    for use in (info, load):
        with pytest.raises(DatasetError) as caught:
            use("cats")
        place = f"{__file__}:{inspect.getsourcelines(found)[1]}"
        assert str(caught.value).startswith(f"data set 'cats' ({place}): {problem}")


def test_a_data_set_that_is_no_function_is_refused_at_once() -> None:
    with pytest.raises(PluginError) as caught:
        dataset("cats")([1, 2])  # type: ignore[type-var]
    assert str(caught.value) == "data set 'cats': is [1, 2]; a data set is a function that returns its arrays"


def test_a_built_in_name_cannot_be_taken() -> None:
    with pytest.raises(PluginError) as caught:
        dataset("mnist")(parts)
    assert str(caught.value) == "data set 'mnist': the name belongs to a built-in data set; choose another one"


SOURCE = '''
import numpy as np

def stripes():
    """Stripes, upright or lying."""
    images = np.zeros((8, 6, 6), dtype=np.uint8)
    images[::2, ::2], images[1::2, :, ::2] = 200, 200
    labels = np.arange(8) % 2
    return images, labels, images[:2], labels[:2]
'''


def test_a_package_adds_a_data_set_by_entry_point(install_package: Callable[..., None]) -> None:
    install_package("acme_images", SOURCE, "flmarket.datasets", stripes="acme_images:stripes")
    assert DATASETS.names()[-1] == "stripes"
    assert info("stripes").shape == Shape(1, 6, 6)
    assert load("stripes").train_labels.tolist() == [0, 1] * 4


def test_the_listing_loads_no_images_and_names_what_is_broken(install_package: Callable[..., None]) -> None:
    install_package("acme_images", SOURCE, "flmarket.datasets", stripes="acme_images:stripes")
    install_package("acme_broken", "import no_such_package", "flmarket.datasets", broken="acme_broken:cats")
    dataset("never")(lambda: pytest.fail("was loaded"))
    listed = {entry.name: (entry.source, entry.problem or summary(entry.thing)) for entry in DATASETS.listing()}
    assert list(listed) == [*BUILTIN, "never", "broken", "stripes"]
    assert listed["mnist"] == ("flmarket", "handwritten digits")
    assert listed["stripes"] == ("acme_images 1.5", "Stripes, upright or lying.")
    assert listed["broken"][1].endswith("cannot be imported: ModuleNotFoundError: No module named 'no_such_package'")
