"""How deep tables and lists stand within one another. A limit keeps every walk over a scenario's data safe."""

import re
from collections.abc import Mapping
from typing import Any

LARGEST_DEPTH = 32

_LONG_KEY = re.compile(
    r"^[ \t]*\[{0,2}[ \t]*(?:(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){" + str(LARGEST_DEPTH) + "}",
    re.MULTILINE,
)


def long_key(text: str) -> int | None:
    """Return the line of a dotted key of too many parts; to be asked first, as reading such a key takes for ever."""
    found = _LONG_KEY.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else None


def too_deep(data: Any) -> str | None:
    """Return the first key above something too deep (empty where it has none), or None."""
    waiting: list[tuple[Any, int, str]] = [(data, 0, "")]
    while waiting:
        value, depth, top = waiting.pop()
        if depth > LARGEST_DEPTH:
            return top
        if isinstance(value, Mapping):
            waiting.extend((item, depth + 1, top or key) for key, item in value.items())
        elif isinstance(value, list):
            waiting.extend((item, depth + 1, top) for item in value)
    return None
