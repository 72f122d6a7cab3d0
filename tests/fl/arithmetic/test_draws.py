"""Draws of the world: each number is a function of its seed, purpose and counter, whatever is drawn with it.

Every test holds with the compiled extension and without it.
"""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.arithmetic import draws
from fl.arithmetic.draws import draw_key, integers, normals, subsets, uniforms, words
from fl.arithmetic.streams import stream_key
from support.implementations import compiled_and_not, without_extension

each = compiled_and_not(draws)

KEY = draw_key(0, "test")


def test_a_key_is_the_beginning_of_the_stream_s_key() -> None:
    assert draw_key(7, "images", "mnist").astype("<u4").tobytes() == stream_key(7, "images", "mnist")[:8]
    keys = draw_key(np.array([[1, 2**62], [-3, 4]]), "quality")
    assert keys.shape == (2, 2, 2)
    assert keys[0, 1].tolist() == draw_key(2**62, "quality").tolist()
    assert draw_key([2**80], "quality")[0].tolist() == draw_key(2**80, "quality").tolist()


def test_draws_of_many_seeds_rounds_and_clients_are_the_single_ones() -> None:
    seeds, rounds, services, clients = np.array([0, 5, 2**40]), np.array([1, 2, 80]), np.arange(2), np.arange(7)
    keys = draw_key(seeds, "quality")[:, None, None, None]  # [3, 1, 1, 1, 2]
    counter = (rounds[:, None, None], services[:, None], clients)
    for draw in (
        lambda key, *at: integers(key, 16, *at),
        lambda key, *at: np.moveaxis(uniforms(key, *at), 0, -1),
        normals,
        lambda key, *at: words(key, 6, *at),
    ):
        together = draw(keys, *counter)
        assert together.shape[:4] == (3, 3, 2, 7)
        for (i, seed), (j, n), m, c in (
            (one, other, m, c)
            for one in enumerate(seeds)
            for other in enumerate(rounds)
            for m in (0, 1)
            for c in (0, 6)
        ):
            alone = draw(draw_key(int(seed), "quality"), int(n), m, c)
            assert together[i, j, m, c].tolist() == alone.tolist()


def test_known_first_values() -> None:
    """Seed 0 must mean for ever what it means today: published results depend on it."""
    assert integers(draw_key(0, "quality"), 1000, 1, 0, np.arange(5)).tolist() == [237, 811, 312, 762, 59]
    assert uniforms(draw_key(0, "ties"), 1, 0, 0).tolist() == [0.7824568291001703, 0.1486533732663815]
    assert normals(draw_key(0, "surrogate", "mnist"), np.arange(3)).tolist() == [
        0.8936833329195953,
        -0.1767311651201078,
        1.0890877060886193,
    ]
    assert subsets(draw_key(0, "images", "mnist"), np.array([4, 9]), np.array([50, 10]), 1, 1, 0)[0].tolist() == [
        9,
        16,
        20,
        31,
    ]


def test_integers_are_equally_likely() -> None:
    counts = np.bincount(integers(KEY, 7, np.arange(70_000)))
    assert counts.tolist() == pytest.approx([10_000] * 7, abs=400)  # standard deviation 93
    assert integers(KEY, np.array([1, 2**31]), 0).max() < 2**31
    assert (integers(KEY, 1, np.arange(50)) == 0).all()


def test_normals_are_the_quantiles_of_uniforms() -> None:
    numbers = normals(KEY, np.arange(20_000))
    assert abs(numbers.mean()) < 0.03  # standard deviation 0.007
    assert numbers.std() == pytest.approx(1, abs=0.03)
    first = uniforms(KEY, np.arange(200))[0]
    assert numbers[:200] == pytest.approx([NormalDist().inv_cdf(p) for p in first.tolist()], abs=1e-9)
    assert normals(KEY, 3).shape == ()


@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=12), part=st.floats(0, 1), seed=st.integers(0, 2**40))
def test_subsets_have_their_size_and_no_member_twice(sizes: list[int], part: float, seed: int) -> None:
    counts = np.array([round(part * size) for size in sizes])
    for count, size, found in zip(
        counts, sizes, subsets(draw_key(seed), counts, np.array(sizes), 1, 1, 2), strict=True
    ):
        assert len(found) == count
        assert (np.diff(found) > 0).all()
        assert count == 0 or 0 <= found[0] <= found[-1] < size


@given(
    sizes=st.lists(st.integers(0, 400), max_size=12),
    parts=st.lists(st.sampled_from([0.0, 0.1, 0.499, 0.5, 0.501, 0.99, 1.0]), min_size=12, max_size=12),
    seed=st.integers(0, 2**40),
)
def test_both_versions_draw_the_same_subsets(sizes: list[int], parts: list[float], seed: int) -> None:
    counts = np.array([round(part * size) for part, size in zip(parts, sizes, strict=False)], dtype=np.int64)
    arguments = (draw_key(seed), counts, np.array(sizes, dtype=np.int64), 3, 1, 2)
    found = subsets(*arguments)
    with without_extension(draws):
        expected = subsets(*arguments)
    assert [own.dtype for own in found] == [own.dtype for own in expected]
    assert [own.tolist() for own in found] == [own.tolist() for own in expected]


def test_a_subset_of_more_than_all_is_refused() -> None:
    with pytest.raises(ValueError, match="a subset cannot have more members than its set"):
        subsets(KEY, np.array([1, 4]), np.array([3, 3]))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_all_subsets_are_equally_likely(count: int) -> None:
    found = [tuple(subsets(KEY, np.array([count]), np.array([5]), n)[0].tolist()) for n in range(2000)]
    each = {subset: found.count(subset) for subset in set(found)}
    expected = {1: 5, 2: 10, 3: 10, 4: 5}[count]
    assert len(each) == expected
    assert list(each.values()) == pytest.approx([2000 / expected] * expected, abs=5 * (2000 / expected) ** 0.5)


def test_a_subset_does_not_depend_on_those_drawn_with_it() -> None:
    """All of them decide how many numbers are drawn ahead, but not which of these count."""
    alone = subsets(KEY, np.array([3]), np.array([90]), 4, 1, 2)[0]
    beside = subsets(KEY, np.array([3, 150]), np.array([90, 300]), 4, 1, 2)[0]
    assert alone.tolist() == beside.tolist()
