"""The seeds that a command is asked for."""

import re

from flmarket.core.errors import InputError

LARGEST = 2**63 - 1  # seed of a run: what reads its logs holds whole numbers in 64 bits


MOST = 1_000_000  # seeds that can be asked for at once


def parse_seeds(text: str) -> list[int]:
    """Read ``--seeds``: ``10`` means 0 to 9; lists (``0,3,7``) and ranges (``0..9``) may be mixed."""
    if re.fullmatch(r"\d{1,6}", text.strip()):
        count = int(text)
        if count < 1:
            raise InputError("seeds: 0 asks for no run; a single number N means seeds 0 to N-1")
        return list(range(count))
    try:
        return listed_seeds(text)
    except InputError as error:
        raise InputError(f"seeds {text!r}: {error}") from None


def listed_seeds(text: str) -> list[int]:
    """Read seeds and ranges of seeds: ``3``, ``0, 3`` or ``0..4``, each once; a single number is a seed here."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\.\.(\d{1,9}))?\s*", part)
        if not match:
            raise InputError(f"{part.strip()!r} is neither a seed of at most nine digits (3) nor a range (0..9)")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InputError(f"the range {part.strip()} runs backwards")
        if last - first >= MOST:
            raise InputError(f"the range {part.strip()} has more than {MOST:,} seeds")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))
