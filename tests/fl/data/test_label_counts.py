"""Data sets of an exact size and EMD (eq. 1 inverted): the nearest EMD that whole images allow."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.arithmetic.draws import draw_key, uniforms
from fl.data.emd import draw_images, label_counts, largest_count, largest_emd, realised_emd
from support.emd import emd


def data_sets(size: int, labels: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield all ways to spread ``size`` images over ``labels`` labels, largest count first."""
    most = size if most is None else most
    if labels == 1:
        if size <= most:
            yield (size,)
        return
    for first in range(min(size, most), -1, -1):
        if first * labels >= size:
            for rest in data_sets(size - first, labels - 1, first):
                yield (first, *rest)


@cache
def possible(size: int, labels: int) -> dict[tuple[int, ...], float]:
    """Every data set and its EMD, by brute force."""
    return {counts: emd(counts) for counts in data_sets(size, labels)}


SMALL = [(size, labels) for labels in (2, 3, 4, 5) for size in (1, 2, 3, 5, 6, 7, 10, 12)]


@pytest.mark.parametrize(("size", "labels"), SMALL)
def test_equation_1_realised_emd_is_the_nearest_possible(size: int, labels: int) -> None:
    emds = np.array(list(possible(size, labels).values()))
    for wanted in np.linspace(0.0, largest_emd(labels), 41):
        realised = realised_emd(size, float(wanted), labels)
        assert np.abs(emds - realised).min() < 1e-12  # some data set has it,
        assert abs(realised - wanted) < np.abs(emds - wanted).min() + 1e-12  # and none comes nearer


@pytest.mark.parametrize(("size", "labels"), SMALL)
def test_largest_count_is_what_the_greediest_such_data_set_needs(size: int, labels: int) -> None:
    for wanted in np.linspace(0.0, largest_emd(labels), 41):
        realised = realised_emd(size, float(wanted), labels)
        fullest = max(counts[0] for counts, v in possible(size, labels).items() if abs(v - realised) < 1e-12)
        assert largest_count(size, float(wanted), labels) == fullest


@pytest.mark.parametrize("size", [100, 200, 300, 400])
@pytest.mark.parametrize("wanted", [0.0, 0.4, 0.6, 0.8, 1.0, 1.8])
def test_the_paper_s_data_sets_are_exact(size: int, wanted: float) -> None:
    assert realised_emd(size, wanted, labels=10) == pytest.approx(wanted, abs=1e-15)
    assert emd(label_counts(size, wanted, 10, draw_key(0, size))) == pytest.approx(wanted, abs=1e-12)


@given(size=st.integers(1, 2000), labels=st.integers(2, 62), part=st.floats(0.0, 1.0), seed=st.integers(0, 2**63))
def test_label_counts_have_the_size_and_the_emd_they_should(size: int, labels: int, part: float, seed: int) -> None:
    wanted = part * largest_emd(labels)
    counts = label_counts(size, wanted, labels, draw_key(seed))
    assert counts.shape == (labels,)
    assert counts.sum() == size
    assert counts.min() >= 0
    assert counts.max() <= largest_count(size, wanted, labels)
    assert emd(counts) == pytest.approx(realised_emd(size, wanted, labels), abs=1e-12)


@pytest.mark.parametrize("labels", [4, 10, 47])
@pytest.mark.parametrize("wanted", [0.2, 0.8, 1.4])
def test_labels_are_as_full_as_they_are_drawn(wanted: float, labels: int) -> None:
    """The numbers of images have the order of the uniform numbers that they are made of."""
    for seed in range(20):
        drawn = uniforms(draw_key(seed), 0, 0, 0, np.arange(labels))[0]
        counts = label_counts(300, wanted, labels, draw_key(seed))
        assert (np.diff(counts[np.argsort(drawn)]) >= 0).all()


def test_how_many_labels_are_over_full_varies() -> None:
    over = {int((label_counts(100, 0.6, 10, draw_key(n)) > 10).sum()) for n in range(200)}
    assert {3, 4, 5} <= over


@pytest.mark.parametrize(("size", "labels"), [(0, 10), (-1, 10), (10, 1)])
def test_what_is_no_data_set_is_refused(size: int, labels: int) -> None:
    with pytest.raises(ValueError, match="at least one image and two labels"):
        label_counts(size, 0.0, labels, draw_key(0))


@pytest.mark.parametrize("labels", [2, 10, 62])
def test_directions_are_alike_in_every_round_for_every_client(labels: int) -> None:
    """Label 0 has too many images as often as any other: for a share of 1 / L, in rounds and clients alike."""
    key = draw_key(0)
    full = [label_counts(40 * labels, 0.8, labels, key, n, c).argmax() for n in range(40) for c in range(10)]
    part = full.count(0) / len(full)
    assert part == pytest.approx(1 / labels, abs=4 * (1 / labels / len(full)) ** 0.5)


# Nine training images of three labels.
BY_LABEL = [np.array([0, 3, 6]), np.array([1, 4]), np.array([2, 5, 7, 8])]


@pytest.mark.parametrize("seed", range(10))
def test_images_are_drawn_without_replacement_from_their_labels(seed: int) -> None:
    drawn = draw_images(np.array([3, 1, 2]), BY_LABEL, draw_key(seed))
    assert set(drawn[:3]) == {0, 3, 6}
    assert drawn[3] in {1, 4}
    assert set(drawn[4:]) < {2, 5, 7, 8}
    assert len(set(drawn)) == 6


def test_every_image_of_a_label_is_drawn_equally_often() -> None:
    drawn = np.concatenate([draw_images(np.array([0, 0, 2]), BY_LABEL, draw_key(n)) for n in range(1000)])
    assert np.bincount(drawn, minlength=9)[[2, 5, 7, 8]] == pytest.approx([500] * 4, abs=80)  # standard deviation 16


def test_a_label_that_runs_short_is_named() -> None:
    with pytest.raises(ValueError, match="label 1 has 2 images, 3 are wanted"):
        draw_images(np.array([1, 3, 0]), BY_LABEL, draw_key(0))
