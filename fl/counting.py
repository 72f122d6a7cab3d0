"""Counts in words: one round, two rounds."""


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, with an ``s`` unless there is one: ``1 round``, ``1,000 rounds``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
