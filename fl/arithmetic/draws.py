"""Draws of the world: numbers that are functions of the seed, a purpose and a counter, for whole arrays at once.

``draw_key(seed, "quality")`` names a stream; in it, ``integers(key, 16, round, service, client)`` is the number of that
round, service and client, whatever else is drawn. All arguments may be arrays, seeds too. The counter's words mean, in
each stream (docs/decisions/data.md):

    quality, departure, speed, ties,
        behaviour, cost, lens             round, service (its index), client, 0
    lasting                               round of the draw or 0, service (its index), client, 0
    labels, lasting labels                round of the draw or 0, service (its index), client, label + L * attempt
    persistence, drift                    round, service (its index) or 0, client, 0
    turns                                 round, 0, client, 0
    mix of a service (by name)            round of the draw or 0, 0, client, position
    images of a service (by name)         round, 0 or 1 + label, client, position
    model of a service (by name)          0, parameter, 0, position
    conduct of a service (by name)        image or round, 0 to 4 (``fl.training.conduct``), client, position
    validation (by data set)              0, label, 0, position
    partition (by data set)               0, 0 (label mixes), 1 or 2 + label, client, label + L * attempt or position
    owned                                 round, client, service (its index), position
    surrogate (by name)                   round, 0, 0, position
    arrivals of a stream (by name)        0, 0, 0, position
    evaluation (by name)                  0, 0 or 1 (validation images), 0, position

Unused words are 0. The generator is Philox4x32-10, in which a block of four random words is a function of a key and a
counter: draws carry no state, so any number of them are computed in one call. Source: Salmon, Moraes, Dror and Shaw,
"Parallel random numbers: as easy as 1, 2, 3", SC 2011. Integers and basic operations alone turn its words into draws:
the same on every machine, whether the compiled extension computes them or, where there is none, NumPy.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fl.arithmetic.elementary import normal_quantile
from fl.arithmetic.native import extension
from fl.arithmetic.streams import KEY_BYTES, stream_keys
from fl.arrays import AnyArray, FloatArray, IntArray, UInt32Array

Word = int | AnyArray  # A word of a counter: a number, or an array of numbers, in [0, 2^32)

_native = extension("blocks", "uniforms", "integers", "subsets")

_ROUNDS = 10
_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], dtype=np.uint64)
_WEYL = np.array([[0x9E3779B9 * n, 0xBB67AE85 * n] for n in range(_ROUNDS)], dtype=np.uint64)
"""The amount that each round adds to the key."""
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def draw_key(seed: int | Sequence[int] | npt.NDArray[np.integer], *purpose: str | int) -> UInt32Array:
    """Return the key [..., 2] of a stream for each seed [...]: the first 8 bytes of ``streams.stream_key``."""
    seeds = np.asarray(seed, dtype=object)  # a seed may be larger than any of NumPy's integers
    keys = stream_keys(seeds.ravel().tolist(), *purpose)
    words = np.frombuffer(b"".join(keys), dtype="<u4").reshape(*seeds.shape, KEY_BYTES // 4)
    return words[..., :2].astype(np.uint32)


def integers(key: UInt32Array, below: int | IntArray, *counter: Word) -> IntArray:
    """Return whole numbers in [0, below), equally likely; the shapes of all arguments broadcast.

    A word of 32 bits is scaled. Probabilities differ by less than 2^-32, which no experiment can see.
    """
    words, shape = _operands(key, counter, below)
    if _native is None:
        return _scaled(_blocks(key, words[:4], shape)[0], below)
    drawn = np.empty((1, *shape), np.int64)
    _native.integers(key, *words, drawn)
    return drawn.reshape(shape)


def uniforms(key: UInt32Array, *counter: Word) -> FloatArray:
    """Return two independent numbers [2, ...] in [0, 1) for each counter, multiples of 2^-53."""
    words, shape = _operands(key, counter)
    if _native is None:
        a, b, c, d = _blocks(key, words, shape).astype(np.uint64)
        high, low = np.stack((a, c)) >> np.uint64(5), np.stack((b, d)) >> np.uint64(6)
        return (high * 2.0**26 + low) * 2.0**-53
    drawn = np.empty((2, *shape), np.float64)
    _native.uniforms(key, *words, drawn)
    return drawn


def normals(key: UInt32Array, *counter: Word) -> FloatArray:
    """Return a standard normal number for each counter, by the inverse of the distribution function."""
    # Numbers strictly between 0 and 1 that are exact: half a step of 2^-52 above a multiple.
    uniform = uniforms(key, *counter)[0]
    numbers = np.atleast_1d(uniform)
    numbers *= 2.0**52
    np.floor(numbers, out=numbers)
    numbers += 0.5
    numbers *= 2.0**-52
    return normal_quantile(numbers).reshape(uniform.shape)


def words(key: UInt32Array, count: int, *counter: Word) -> UInt32Array:
    """Return ``count`` words [..., count] for each counter of three words: the beginning of a sequence without end."""
    first = [np.asarray(word)[..., None] for word in (*counter, *[0] * (3 - len(counter)))]
    needed = -(-count // 4)
    drawn = blocks(key[..., None, :], *first, np.arange(needed))
    return np.moveaxis(drawn, 0, -1).reshape(*drawn.shape[1:-1], 4 * needed)[..., :count]


def subsets(
    key: UInt32Array,  # [2] the stream
    counts: IntArray,  # [S] how many members each subset has
    sizes: IntArray,  # [S] how many each set has, at least as many
    *counter: int,  # up to three words; the second one is the index of the set, added to the one given
) -> list[IntArray]:
    """Draw a subset of each of several sets; all subsets of the wanted size are equally likely.

    The first different numbers of a sequence are a uniform subset, whatever is drawn after them. Where more than half
    of a set is wanted, what is left out is drawn instead.
    """
    if (counts > sizes).any():
        raise ValueError("a subset cannot have more members than its set")
    first, second, third = (*counter, *[0] * (3 - len(counter)))
    if _native is None:
        return _subsets(key, counts, sizes, first, second, third)
    ends = counts.cumsum().tolist()
    members = np.empty(ends[-1] if ends else 0, dtype=np.int64)
    _native.subsets(key, counts, sizes, first, second, third, members)
    return [members[start:end] for start, end in pairwise([0, *ends])]


def _subsets(
    key: UInt32Array, counts: IntArray, sizes: IntArray, first: int, second: int, third: int
) -> list[IntArray]:
    inverted = 2 * counts > sizes
    wanted = np.where(inverted, sizes - counts, counts)
    owners, length = np.arange(len(counts)), 8 + 3 * int(wanted.max(initial=0)) // 2
    while True:
        drawn = _scaled(words(key, length, first, second + owners, third), sizes[:, None])
        codes = (owners[:, None] * int(sizes.max(initial=1)) + drawn).ravel()
        fresh = np.zeros(codes.size, dtype=np.bool_)
        fresh[np.unique(codes, return_index=True)[1]] = True
        rank = np.cumsum(fresh.reshape(drawn.shape), axis=1)
        if (rank[:, -1] >= wanted).all():
            break
        length *= 2
    taken = fresh.reshape(drawn.shape) & (rank <= wanted[:, None])
    found = []
    for owner, size in enumerate(sizes.tolist()):
        chosen = np.sort(drawn[owner][taken[owner]])
        found.append(np.delete(np.arange(size), chosen) if inverted[owner] else chosen)
    return found


def blocks(key: UInt32Array, *counter: Word) -> UInt32Array:
    """Return the blocks of four words [4, ...] for counters under keys [..., 2]; the shapes of all broadcast."""
    words, shape = _operands(key, counter)
    if _native is None:
        return _blocks(key, words, shape)
    drawn = np.empty((4, *shape), np.uint32)
    _native.blocks(key, *words, drawn)
    return drawn


def _scaled(drawn: UInt32Array, below: int | IntArray) -> IntArray:
    """Return words as whole numbers in [0, below)."""
    return (drawn.astype(np.uint64) * np.asarray(below, dtype=np.uint64) >> np.uint64(32)).astype(np.int64)


def _operands(
    key: UInt32Array, counter: Sequence[Word], *further: int | IntArray
) -> tuple[list[IntArray], tuple[int, ...]]:
    """Return the counters' four words, and what is further given, as arrays, and the shape that all broadcast to."""
    words = [np.asarray(word, dtype=np.int64) for word in (*counter, *[0] * (4 - len(counter)), *further)]
    return words, np.broadcast(key[..., 0], *words).shape


def _blocks(key: UInt32Array, counter: Sequence[IntArray], shape: tuple[int, ...]) -> UInt32Array:
    if any((word >> 32).any() for word in counter):
        raise ValueError("the words of a counter must be in [0, 2^32)")
    # Words 0 and 2 are multiplied, 1 and 3 are not: stacked, each step below serves both halves of the block.
    even, odd = np.empty((2, *shape), np.uint64), np.empty((2, *shape), np.uint64)
    even[0], odd[0], even[1], odd[1] = counter
    keys = np.empty((2, *(1,) * (len(shape) + 1 - key.ndim), *key.shape[:-1]), np.uint64)
    keys[0], keys[1] = key[..., 0], key[..., 1]
    ones = (1,) * len(shape)
    multipliers = _MULTIPLIERS.reshape(2, *ones)
    for round_key in (keys + _WEYL.reshape(_ROUNDS, 2, *ones)) & _LOW:
        product = (even * multipliers)[::-1]
        np.right_shift(product, _HALF, out=even)
        even ^= odd
        even ^= round_key
        np.bitwise_and(product, _LOW, out=odd)
    words = np.empty((4, *shape), np.uint32)
    words[0::2], words[1::2] = even, odd
    return words
