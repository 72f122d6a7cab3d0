"""Philox4x32-10, a counter-based generator: a block of random words is a function of a key and a counter.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Draws carry no state, so
any number of them are computed in one call. Integer arithmetic alone: the same words on every machine and with every
version of NumPy, whether the compiled extension computes them or, where there is none, NumPy.
"""

from collections.abc import Sequence

import numpy as np

from fl.arithmetic.native import extension
from fl.arrays import AnyArray, FloatArray, IntArray, UInt32Array

ROUNDS = 10

_native = extension("blocks", "uniforms", "integers")

_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], dtype=np.uint64)
_WEYL = np.array([[0x9E3779B9 * n, 0xBB67AE85 * n] for n in range(ROUNDS)], dtype=np.uint64)
"""What each round adds to the key."""
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def blocks(
    key: UInt32Array,  # [..., 2] words of the keys
    # the four words of the counters, each a number or an array [...] of numbers in [0, 2^32)
    counter: Sequence[int | AnyArray],
) -> UInt32Array:
    """Return the blocks of four words [4, ...] for counters under keys; the shapes of both broadcast."""
    words, shape = _operands(key, counter)
    if _native is None:
        return _blocks(key, words, shape)
    found = np.empty((4, *shape), np.uint32)
    _native.blocks(key, *words, found)
    return found


def uniforms(key: UInt32Array, counter: Sequence[int | AnyArray]) -> FloatArray:
    """Return two numbers [2, ...] in [0, 1), multiples of 2^-53, made of each block; arguments as for ``blocks``."""
    words, shape = _operands(key, counter)
    if _native is None:
        a, b, c, d = _blocks(key, words, shape).astype(np.uint64)
        high, low = np.stack((a, c)) >> np.uint64(5), np.stack((b, d)) >> np.uint64(6)
        return (high * 2.0**26 + low) * 2.0**-53
    found = np.empty((2, *shape), np.float64)
    _native.uniforms(key, *words, found)
    return found


def integers(key: UInt32Array, counter: Sequence[int | AnyArray], below: int | IntArray) -> IntArray:
    """Return the first word of each block as a whole number in [0, below); the shape of ``below`` broadcasts, too."""
    words, shape = _operands(key, counter, below)
    if _native is None:
        return scaled(_blocks(key, words[:4], shape)[0], below)
    found = np.empty((1, *shape), np.int64)
    _native.integers(key, *words, found)
    return found.reshape(shape)


def scaled(drawn: UInt32Array, below: int | IntArray) -> IntArray:
    """Return words as whole numbers in [0, below); see ``fl.arithmetic.draws.integers``."""
    return (drawn.astype(np.uint64) * np.asarray(below, dtype=np.uint64) >> np.uint64(32)).astype(np.int64)


def _operands(
    key: UInt32Array, counter: Sequence[int | AnyArray], *further: int | AnyArray
) -> tuple[list[IntArray], tuple[int, ...]]:
    """Return the words of the counters, and what is further given, as arrays, and the shape to which all broadcast."""
    if len(counter) != 4:
        raise ValueError(f"a counter has 4 words, not {len(counter)}")
    words = [np.asarray(word, dtype=np.int64) for word in (*counter, *further)]
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
    for round_key in (keys + _WEYL.reshape(ROUNDS, 2, *ones)) & _LOW:
        product = (even * multipliers)[::-1]
        np.right_shift(product, _HALF, out=even)
        even ^= odd
        even ^= round_key
        np.bitwise_and(product, _LOW, out=odd)
    words = np.empty((4, *shape), np.uint32)
    words[0::2], words[1::2] = even, odd
    return words
