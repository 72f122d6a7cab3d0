"""Philox4x32-10: the published vectors, and a plain version of the algorithm that NumPy's generator confirms.

Every test holds for the compiled version and for NumPy's.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.arithmetic import draws
from fl.arithmetic.draws import blocks, integers, uniforms
from support.implementations import compiled_and_not, vectors, without_extension

each = compiled_and_not(draws)

MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
WEYL = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}


def plain(counter: list[int], key: list[int], bits: int) -> list[int]:
    """Return a block of Philox4xW-10 in whole numbers, as the paper describes it, for words of W bits."""
    mask = 2**bits - 1
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        one, other = MULTIPLIERS[bits][0] * a, MULTIPLIERS[bits][1] * c
        a, b, c, d = (other >> bits) ^ b ^ k, other & mask, (one >> bits) ^ d ^ m, one & mask
        k, m = (k + WEYL[bits][0]) & mask, (m + WEYL[bits][1]) & mask
    return [a, b, c, d]


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # Random123, tests/kat_vectors, "philox4x32 10".
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_the_published_vectors(counter: str, key: str, expected: str) -> None:
    drawn = blocks(np.array(words(key), dtype=np.uint32), *words(counter))
    assert drawn.dtype == np.uint32
    assert drawn.tolist() == words(expected) == plain(words(counter), words(key), 32)


def test_the_plain_version_is_numpy_s_with_words_of_64_bits() -> None:
    numpy_s = np.random.Philox(key=np.array([3, 5], dtype=np.uint64), counter=[7, 11, 13, 17])
    drawn = numpy_s.random_raw(8).tolist()
    assert drawn[:4] == plain([8, 11, 13, 17], [3, 5], 64)  # NumPy counts before it draws
    assert drawn[4:] == plain([9, 11, 13, 17], [3, 5], 64)


@pytest.mark.parametrize("bad", [-1, 2**32, np.array([3, -(2**40)])])
def test_a_word_of_a_counter_has_32_bits(bad: int) -> None:
    with pytest.raises(ValueError, match=r"the words of a counter must be in \[0, 2\^32\)"):
        blocks(np.zeros(2, dtype=np.uint32), 0, 0, bad, 0)


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        blocks(np.zeros((3, 2), dtype=np.uint32), 0, np.arange(2), 0, 0)


def test_uniforms_are_the_high_bits_of_two_words() -> None:
    a, b, c, d = (blocks(np.array([1, 2], dtype=np.uint32), 3, 4, 5, np.arange(50)).astype(object)).tolist()
    expected = [[(x >> 5 << 26 | y >> 6) / 2**53 for x, y in zip(*pair, strict=True)] for pair in ((a, b), (c, d))]
    assert uniforms(np.array([1, 2], dtype=np.uint32), 3, 4, 5, np.arange(50)).tolist() == expected


sides = st.lists(st.sampled_from([0, 1, 2, 5, 11]), max_size=4)  # the extension draws eight at once


@given(shape=sides, stays=st.lists(st.integers(0, 63), min_size=6, max_size=6), seed=st.integers(0, 2**20))
def test_both_versions_give_the_same_numbers(shape: list[int], stays: list[int], seed: int) -> None:
    """Keys and counters of any shape that broadcasts.

    A bit d of ``stays`` makes dimension d of one of them 1, 16 leaves its first dimension out, 32 turns it around.
    """
    random = np.random.default_rng(seed)

    def drawn(bits: int, *more: int) -> np.ndarray:
        own = [1 if bits >> d & 1 else side for d, side in enumerate(shape)]
        words = random.integers(0, 2**32, (*own[bits >> 4 & 1 :], *more), dtype=np.uint64)
        return np.flip(words) if bits & 32 else words

    key = drawn(stays[0], 2).astype(np.uint32)
    *counter, below = [drawn(bits).astype(np.int64) for bits in stays[1:]]
    for make in (blocks, uniforms, lambda key, *counter: integers(key, below, *counter)):
        found = make(key, *counter)
        with without_extension(draws):
            expected = make(key, *counter)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("width", [0, 1])
@pytest.mark.parametrize("count", [1, 7, 8, 13, 64, 200])
def test_all_vectors_give_the_same_numbers(width: int, count: int) -> None:
    words = np.random.PCG64(2).random_raw(6 * count).reshape(6, count) & np.uint64(0xFFFFFFFF)
    key, counter = words[4:].T.astype(np.uint32), words[:4].astype(np.int64)
    expected = blocks(key, *counter), blocks(key[0], 0, *counter[1:3], 7)
    with vectors(width):
        found = blocks(key, *counter), blocks(key[0], 0, *counter[1:3], 7)
        with pytest.raises(ValueError, match="the words of a counter must be in"):
            blocks(key, *counter[:3], 2**32)
    assert [own.tolist() for own in found] == [own.tolist() for own in expected]


def test_edges_of_keys_and_counters() -> None:
    edges = [0, 1, 2**31, 2**32 - 1]
    for key in product(edges, edges):
        grid = np.array(list(product(edges, repeat=4))).T
        found = blocks(np.array(key, dtype=np.uint32), *grid)
        assert found.T.tolist() == [plain(counter, list(key), 32) for counter in grid.T.tolist()]


def test_many_blocks_are_drawn_without_the_gil() -> None:
    """More than are drawn under it, so that both ways are compared with the plain version."""
    found = blocks(np.array([5, 6], dtype=np.uint32), 0, 1, 2, np.arange(5000))
    assert [found[:, n].tolist() for n in (0, 4999)] == [plain([0, 1, 2, n], [5, 6], 32) for n in (0, 4999)]
