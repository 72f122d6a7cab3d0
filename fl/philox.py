"""Philox4x32-10, a counter-based generator: a block of random words is a function of a key and a counter.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. There is no state to
carry from one draw to the next, so the numbers of any seeds, rounds, services and clients are computed in one call, in
any order. Integer arithmetic alone: the same words on every machine and with every version of NumPy.
"""

from collections.abc import Sequence

import numpy as np

from fl.arrays import AnyArray, UInt32Array

ROUNDS = 10

_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], dtype=np.uint64)
_WEYL = np.array([[0x9E3779B9 * n, 0xBB67AE85 * n] for n in range(ROUNDS)], dtype=np.uint64)
"""What each round adds to the key."""
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def blocks(key: UInt32Array, counter: Sequence[int | AnyArray]) -> UInt32Array:
    """Return the blocks of four words [4, ...] for counters under keys; the shapes of both broadcast.

    Args:
        key: [..., 2] words of the keys.
        counter: the four words of the counters, each a number or an array [...] of numbers in [0, 2^32).
    """
    if len(counter) != 4:
        raise ValueError(f"a counter has 4 words, not {len(counter)}")
    shape = np.broadcast_shapes(key.shape[:-1], *(np.shape(word) for word in counter))
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
