"""The generators of random numbers that a process has one of each: torch's, NumPy's and Python's.

Models draw from them: their initial parameters, dropout, augmentation. Who else in the process draws from them must not
matter, nor must it be noticed there that a model did.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch

_BORROWED = RLock()
"""Held while the generators are lent: two threads at once would draw from each other's seed."""


@contextmanager
def seeded(key: bytes) -> Iterator[Callable[[], bool]]:
    """Seed the generators from a keyed stream (``fl.arithmetic.streams.stream_key``), and put them back as they were.

    Lent to one thread at a time. What is yielded tells, once and at the end, whether any number was drawn.
    """
    number = int.from_bytes(key[:8], "little") >> 1
    with _BORROWED:
        of_torch = [torch.default_generator, *torch.cuda.default_generators]
        before = [generator.get_state() for generator in of_torch], random.getstate(), np.random.get_state()  # noqa: NPY002

        def seed() -> None:
            for generator in of_torch:
                generator.manual_seed(number)
            random.seed(number)
            np.random.seed(number % 2**32)  # noqa: NPY002

        try:
            seed()
            first = _draw()
            seed()
            yield lambda: _draw() != first
        finally:
            for generator, state in zip(of_torch, before[0], strict=True):
                generator.set_state(state)
            random.setstate(before[1])
            np.random.set_state(before[2])  # noqa: NPY002


def _draw() -> tuple[int, int, int]:
    return int(torch.randint(2**62, ())), random.getrandbits(62), int(np.random.randint(2**62))  # noqa: NPY002
