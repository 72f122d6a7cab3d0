"""Text for people: counts and times in words, and foreign text made fit for a terminal, which would act on it."""

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


def printable(text: str) -> str:
    r"""Return a text on one line, with an escape (``\x1b``) for each character that is not shown as itself.

    These are control and format characters (among them those that override the writing direction), line ends, halves of
    surrogate pairs, and blanks other than the space.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def printable_lines(text: str) -> str:
    """Return a text as ``printable`` does, but leave its line ends."""
    return "\n".join(map(printable, text.split("\n")))
