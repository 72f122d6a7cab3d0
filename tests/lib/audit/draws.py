"""The random numbers of a run's world: Philox4x32-10 under keys of SHA-256 (docs/decisions/data.md)."""

import hashlib
import math
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist

import numpy as np

LOW = 0xFFFFFFFF


@lru_cache(maxsize=4096)
def digest(seed: int, *purpose: str | int) -> bytes:
    """Return the SHA-256 that names a stream."""
    parts = [f"i{seed}", *(f"i{part}" if isinstance(part, int) else f"s{len(part)}:{part}" for part in purpose)]
    return hashlib.sha256("/".join(parts).encode()).digest()


@lru_cache(maxsize=2**18)
def block(seed: int, purpose: tuple[str | int, ...], *counter: int) -> tuple[int, int, int, int]:
    """Return the four words of a counter in a stream."""
    key = digest(seed, *purpose)
    low, high = int.from_bytes(key[:4], "little"), int.from_bytes(key[4:8], "little")
    a, b, c, d = (*counter, 0, 0, 0, 0)[:4]
    for _ in range(10):
        one, other = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (other >> 32) ^ b ^ low, other & LOW, (one >> 32) ^ d ^ high, one & LOW
        low, high = (low + 0x9E3779B9) & LOW, (high + 0xBB67AE85) & LOW
    return a, b, c, d


def whole(seed: int, purpose: tuple[str | int, ...], below: int, *counter: int) -> int:
    """Return a whole number in [0, below)."""
    return block(seed, purpose, *counter)[0] * below >> 32


def pair(seed: int, purpose: tuple[str | int, ...], *counter: int) -> tuple[float, float]:
    """Return two numbers in [0, 1)."""
    a, b, c, d = block(seed, purpose, *counter)
    return (((a >> 5) << 26) + (b >> 6)) / 2.0**53, (((c >> 5) << 26) + (d >> 6)) / 2.0**53


def normal(seed: int, purpose: tuple[str | int, ...], *counter: int) -> float:
    """Return a standard normal number."""
    return standard_normal((math.floor(pair(seed, purpose, *counter)[0] * 2.0**52) + 0.5) / 2.0**52)


def standard_normal(share: float) -> float:
    """Return the number that a share of a standard normal distribution is below."""
    return NormalDist().inv_cdf(share)


def words(seed: int, purpose: tuple[str | int, ...], first: int, second: int, third: int) -> Iterator[int]:
    """Yield a sequence of words: the blocks of the counters that end in 0, 1, 2, ..."""
    position = 0
    while True:
        yield from block(seed, purpose, first, second, third, position)
        position += 1


def subset(count: int, size: int, sequence: Iterator[int]) -> list[int]:
    """Return ``count`` of ``size`` members, ascending; of more than half, the others are drawn."""
    if 2 * count > size:
        left_out = set(subset(size - count, size, sequence))
        return [member for member in range(size) if member not in left_out]
    chosen: set[int] = set()
    while len(chosen) < count:
        chosen.add(next(sequence) * size >> 32)
    return sorted(chosen)


def permutations(size: int, count: int, key: bytes) -> list[np.ndarray]:
    """Return permutations drawn one after another by PCG64, whose initial state and increment are a digest."""
    words_ = np.frombuffer(key, dtype="<u8").astype(np.uint64)

    class Seed(np.random.bit_generator.ISeedSequence):
        def generate_state(self, n_words, dtype=np.uint32):  # type: ignore[no-untyped-def]
            return words_[:n_words].astype(dtype)

    generator = np.random.Generator(np.random.PCG64(Seed()))
    return [generator.permutation(size) for _ in range(count)]
