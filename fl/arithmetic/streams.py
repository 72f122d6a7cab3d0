"""Keyed random streams: every random draw of a simulation is named by its purpose.

``stream(seed, "policy", "mnist", 3)`` is the generator of that service's policy in round 3, in any process and after
any other calls: all policies face the same world, and a resumed run needs no saved state. The world itself is drawn by
``fl.arithmetic.draws``: NumPy keeps PCG64's words stable, but not the methods of its ``Generator`` (``permutation``,
...).
"""

import hashlib
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator
from numpy.random.bit_generator import ISeedSequence

from fl.arithmetic.native import extension
from fl.arrays import IntArray

_native = extension("permutation")

KEY_BYTES = 32


class _KeyedSeed(ISeedSequence):
    """Feeds a SHA-256 digest to PCG64 as its whole initial state.

    A digest is already well mixed and exactly as long as PCG64's state and increment, so NumPy's own mixing of seeds
    (``SeedSequence``), four times as slow, would add nothing.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        # Little-endian on every machine, so that a seed means the same stream everywhere.
        words = np.frombuffer(self._key, dtype=np.dtype(dtype).newbyteorder("<"))
        return words[:n_words].astype(dtype)


def stream_key(seed: int, *purpose: str | int) -> bytes:
    """Return the 32-byte key of the stream for ``purpose``.

    Parts are written with their type and length, so that ``("a", 12)``, ``("a1", 2)`` and ``("a", "12")`` differ.
    """
    return _key(seed, _written(purpose))


def stream_keys(seeds: Iterable[int], *purpose: str | int) -> list[bytes]:
    """Return the ``stream_key`` of one purpose under each of many seeds. Errors as there."""
    rest = _written(purpose)
    return [_key(seed, rest) for seed in seeds]


def _written(purpose: Sequence[str | int]) -> str:
    rest = ""
    for part in purpose:
        rest += f"/i{part}" if isinstance(part, int) else f"/s{len(part)}:{part}"
    return rest


def _key(seed: int, rest: str) -> bytes:
    try:
        number = index(seed)
    except TypeError:
        raise TypeError(f"a seed is an integer, not {seed!r}") from None
    return hashlib.sha256(f"i{number}{rest}".encode()).digest()


def generator(key: bytes) -> Generator:
    """Return a fresh generator at the start of the stream named by ``key`` (see ``stream_key``)."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"a stream key has {KEY_BYTES} bytes, not {len(key)}")
    # NumPy takes any ISeedSequence; its stubs know only SeedSequence.
    return Generator(PCG64(_KeyedSeed(key)))  # type: ignore[arg-type]


def permutation(key: bytes, size: int) -> IntArray:
    """Return ``generator(key).permutation(size)``. The extension makes it in half the time."""
    if _native is None:
        return generator(key).permutation(size)
    order = np.empty(size, np.int64)
    _native.permutation(key, order)
    return order


def stream(
    seed: int,  # the run's seed, any integer
    # what the numbers are for, from the general to the particular: ``"images", round, client, service``
    *purpose: str | int,
) -> Generator:
    """Return the generator for ``purpose`` under ``seed``, at its start."""
    return generator(stream_key(seed, *purpose))
