"""Data sets by name: what there is, and what a loaded one consists of."""

import math
from pathlib import Path

import numpy as np
import pytest

from fl.data import embedded
from fl.data import torchvision_files as vision
from fl.data.dataset import Dataset, DatasetError
from fl.data.embedded import OFFICIAL
from fl.data.registry import DATASETS, info, load
from flmarket.core.plugins import UnknownPluginError

# What there is


def test_data_sets_go_by_these_names() -> None:
    assert DATASETS.names() == [
        "digits", "strokes", "scribbles", "mnist", "fashion-mnist", "emnist-digits", "emnist-letters",
        "emnist-balanced", "kmnist", "cifar-10", "svhn",
    ]  # fmt: skip
    assert [name for name in DATASETS.names() if info(name).source == "embedded"] == ["digits", "strokes", "scribbles"]
    assert {name for name in DATASETS.names() if info(name).source == "download"} == set(vision.FILES)


def test_downloaded_sets_have_the_sizes_that_were_published() -> None:
    """Labels, training and test images, and training images of the rarest label."""
    found = [info(name) for name in DATASETS.names() if info(name).source == "download"]
    assert {i.name: (i.labels, i.train_size, i.test_size, i.rarest_label) for i in found} == {
        "mnist": (10, 60_000, 10_000, 5_421),
        "fashion-mnist": (10, 60_000, 10_000, 6_000),
        "emnist-digits": (10, 240_000, 40_000, 24_000),
        "emnist-letters": (26, 124_800, 20_800, 4_800),
        "emnist-balanced": (47, 112_800, 18_800, 2_400),
        "kmnist": (10, 60_000, 10_000, 6_000),
        "cifar-10": (10, 50_000, 10_000, 5_000),
        "svhn": (10, 73_257, 26_032, 4_659),
    }


@pytest.mark.parametrize("name", DATASETS.names())
def test_what_is_known_of_a_data_set_is_possible(name: str) -> None:
    found = info(name)
    assert found.name == name
    assert found.labels * found.rarest_label <= found.train_size
    assert found.description
    assert found.licence


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("mnits", "did you mean 'mnist'?"), ("imagenet", "choose from digits, strokes, scribbles, mnist, ")],
)
def test_an_unknown_name_gets_a_hint(asked: str, hint: str) -> None:
    for function in (info, load):
        with pytest.raises(UnknownPluginError) as caught:
            function(asked)
        assert str(caught.value).startswith(f"unknown data set {asked!r}; {hint}")


# Loading


def test_images_of_a_label_are_found_by_label() -> None:
    loaded = load("strokes")
    assert [pool.tolist() for pool in loaded.by_label] == [list(range(k, 12_000, 10)) for k in range(10)]
    assert loaded.by_label[0].dtype == np.int64


@pytest.mark.parametrize("brightest", [False, True])
def test_scale_and_offset_are_exact_to_the_last_bit(brightest: bool) -> None:
    """The sums are integers, taken here without any limit: a single pixel more or less would show, or an overflow."""
    loaded = load("strokes")
    if brightest:
        images = 255 - loaded.train_images // 64
        arrays = (images, loaded.train_labels, loaded.test_images, loaded.test_labels)
        loaded = Dataset.of(loaded.info, arrays, {}, {})
    pixels = loaded.train_images.astype(np.int64)
    count, total, squares = pixels.size, int(pixels.sum()), int((pixels * pixels).sum())
    deviation = math.sqrt((count * squares - total * total) / count**2)
    assert (loaded.scale, loaded.offset) == (1.0 / deviation, -total / count / deviation)


def test_arrays_are_read_only() -> None:
    loaded = load("digits")
    arrays = (loaded.train_images, loaded.train_labels, loaded.test_images, loaded.test_labels, *loaded.by_label)
    assert not any(array.flags.writeable for array in arrays)


@pytest.mark.parametrize("name", ["digits", "strokes", "scribbles"])
def test_embedded_data_sets_are_as_announced(name: str) -> None:
    loaded = load(name, download=False)
    assert loaded.info == info(name)
    assert loaded.official
    assert dict(loaded.digests) == OFFICIAL[name]


def test_an_embedded_set_that_came_out_otherwise_is_unofficial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "OFFICIAL", {"digits": {**OFFICIAL["digits"], "test-labels": "0" * 64}})
    assert not load("digits").official


def test_a_drawn_set_that_came_out_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digests are known before it is drawn."""
    monkeypatch.setattr(embedded, "DRAWN", {"digits": {**OFFICIAL["digits"], "test-labels": "0" * 64}})
    with pytest.raises(DatasetError, match="'digits': the images that are drawn here are not"):
        load("digits")


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_official_files_are_recognised(name: str, real_images: Path) -> None:
    loaded = load(name, real_images, download=False)
    assert loaded.official
    assert loaded.info == info(name)


@pytest.mark.real_data
def test_a_composite_of_emnist_is_marked_unofficial(real_images: Path) -> None:
    loaded = load("emnist-digits", real_images, download=False)
    assert loaded.official == (len(loaded.train_labels) == info("emnist-digits").train_size)
    assert loaded.info.labels == 10
