"""Philox4x32-10, a counter-based generator: a block of random words is a function of a key and a counter.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. There is no state to
carry from one draw to the next, so the numbers of any seeds, rounds, services and clients are computed in one call, in
any order. Integer arithmetic alone: the same words on every machine and with every version of NumPy.
"""

from collections.abc import Sequence

import numpy as np

from fl.arrays import AnyArray, UInt32Array, UInt64Array

ROUNDS = 10

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
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
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(word, dtype=np.uint64) for word in counter))
    shape = np.broadcast_shapes(key.shape[:-1], c0.shape)
    # Words 0 and 2 are multiplied, 1 and 3 are not: stacked, each step below serves both halves of the block.
    even, odd = np.empty((2, *shape), np.uint64), np.empty((2, *shape), np.uint64)
    even[0], even[1], odd[0], odd[1] = c0, c2, c1, c3
    multipliers, weyl = (_column(pair, len(shape)) for pair in (_MULTIPLIERS, _WEYL))
    round_key = np.moveaxis(key.astype(np.uint64), -1, 0)
    round_key = round_key.reshape(2, *(1,) * (len(shape) - key.ndim + 1), *key.shape[:-1])
    for _ in range(ROUNDS):
        product = (even * multipliers)[::-1]
        even = product >> _HALF
        even ^= odd
        even ^= round_key
        odd = product & _LOW
        round_key = (round_key + weyl) & _LOW
    return np.stack((even[0], odd[0], even[1], odd[1])).astype(np.uint32)


def _column(pair: tuple[int, int], axes: int) -> UInt64Array:
    """Return two numbers, one for each half of the block, with ``axes`` axes to broadcast along."""
    return np.array(pair, dtype=np.uint64).reshape(2, *(1,) * axes)
