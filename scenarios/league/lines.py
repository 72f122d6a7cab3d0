"""Reads the files in a league's folder that keep, line by line, what is not done again."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from fl.errors import InputError

Key = TypeVar("Key")
Value = TypeVar("Value")


def read_lines(
    path: Path, columns: Sequence[str], parse: Callable[[list[str]], tuple[Key, Value]], remedy: str
) -> dict[Key, Value]:
    """Return what a file holds, up to a last line that is not whole; nothing if it is not there.

    Args:
        path: a CSV file without quotes.
        columns: those of its header.
        parse: returns what a line is about, and what it says of that; a ValueError says what is wrong with it.
        remedy: what the user can do about a line that is wrong.

    Raises:
        InputError: the file cannot be read, is something else, or has a line that is wrong or contradicts another one.
    """
    found: dict[Key, Value] = {}
    if not path.exists():
        return found
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}; choose another folder with --out") from error
    if lines and lines[0].strip() != ",".join(columns):
        raise InputError(f"{path}:1: is not a league's; choose another folder with --out")
    for number, line in enumerate(lines[1:], start=2):
        try:
            key, value = parse(line.split(","))
        except ValueError as error:
            raise InputError(f"{path}:{number}: {error}; {remedy}") from None
        if found.setdefault(key, value) != value:
            raise InputError(f"{path}:{number}: an earlier line says otherwise; {remedy}")
    return found
