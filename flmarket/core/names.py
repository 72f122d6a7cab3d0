"""Names that users give things, and what an error suggests when one is wrong. The one place for "did you mean"."""

import re
from collections.abc import Collection
from difflib import get_close_matches

NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]*$"
"""Names become folders, columns and cells: they must be valid in a path on every system, are no options of a command,
and begin no formula of a spreadsheet."""

LONGEST_NAME = 64
_LONGEST_SHOWN = 60
_LONGEST_FOLDER = 200
_SHORTEST_BEGINNING = 3
_LEAST_LIKE = 0.61  # three letters of five in common are not enough: until is no count


def name_problem(name: str) -> str | None:
    """Return why a name cannot be used, or None if it can."""
    if not re.fullmatch(NAME_PATTERN, name):
        return "a name consists of letters, digits, '.', '_' and '-', and does not start with '.' or '-'"
    if len(name) > LONGEST_NAME:
        return f"a name has at most {LONGEST_NAME} characters"
    return None


def folder_problem(name: str) -> str | None:
    """Return why something made of names, such as the label of a policy and its agent, cannot be a folder's name."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._@+=-]*", name) or len(name) > _LONGEST_FOLDER:
        return f"{name[:_LONGEST_SHOWN]!r} cannot be the name of a folder"
    return None


def nearest(word: object, known: Collection[str]) -> str | None:
    """Return the known name that is most like what was given, or None where none is near.

    A name that begins with what was given comes first: ``target`` stands for ``target_accuracy``.
    """
    if not isinstance(word, str):
        return None
    longer = [name for name in known if name.startswith(word)] if len(word) >= _SHORTEST_BEGINNING else []
    if longer:
        return min(longer, key=len)
    # A typing error never runs to a hundred letters, and comparing long names is slow.
    near = get_close_matches(word[:100], known, n=1, cutoff=_LEAST_LIKE) or [
        name for name in known if name.lower() == word.lower()
    ]
    return near[0] if near else None


def did_you_mean(word: object, known: Collection[str]) -> str:
    """Return ``; did you mean 'x'?`` for the nearest known name, or nothing where none is near."""
    near = nearest(word, known)
    return "" if near is None else f"; did you mean {near!r}?"


def suggest(word: object, known: Collection[str]) -> str:
    """Return what follows an error about an unknown name: the nearest known one, or else all of them."""
    return did_you_mean(word, known) or (f"; choose from {', '.join(known)}" if known else "")


def unknown(kind: str, name: str, known: Collection[str]) -> str:
    """Return the message for an unknown name: ``unknown policy 'best'; choose from random, lcfa``."""
    shown = name if len(name) <= _LONGEST_SHOWN else f"{name[: _LONGEST_SHOWN - 3]}..."
    return f"unknown {kind} {shown!r}{suggest(name, known)}"


def unknown_plugin(kind: str, name: str, known: Collection[str]) -> str:
    """Return the message for an unknown name of what users can add: as ``unknown``, and how to load their own."""
    return f"{unknown(kind, name, known)} (for one of your own, load its plug-in file)"
