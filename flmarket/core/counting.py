"""Counts and times in words: one round, two rounds, rounds 3-5, 2 h 5 min."""

from collections.abc import Sequence
from itertools import groupby
from math import ceil


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, with an ``s`` unless there is one: ``1 round``, ``1,000 rounds``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def spans(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text: ``31-33, 40``."""
    groups = groupby(enumerate(numbers), key=lambda it: it[1] - it[0])
    ends = ([number for _, number in group] for _, group in groups)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ends)


def duration(amount: float) -> str:
    """Return a time to wait, rounded up: ``12 s``, ``3 min``, ``2 h 5 min``."""
    if amount < 60:
        return f"{ceil(amount)} s"
    hours, minutes = divmod(ceil(amount / 60), 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min"
