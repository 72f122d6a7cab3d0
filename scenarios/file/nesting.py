"""How deep tables and lists stand within one another. A limit keeps every walk over a scenario's data safe."""

import re
from collections.abc import Mapping
from typing import Any

LARGEST_DEPTH = 32

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
# No alternative gives back what it has matched (*+, ++), and each takes what it begins with, closed or not: that is why
# the search takes no longer than the text is long.
_TOKENS = re.compile(
    rf"(?P<key>(?:{_PART}\.[ \t]*+){{{LARGEST_DEPTH}}})"
    r"""|[A-Za-z0-9_-]++|\#[^\n]*+"""
    r"""|"{3}(?:[^"\\]|\\.|"(?!""))*+(?:"{3})?+|"(?:[^"\\\n]|\\.)*+"?+"""
    r"""|'{3}(?:[^']|'(?!''))*+(?:'{3})?+|'[^'\n]*+'?+""",
    re.DOTALL,
)


def long_key(text: str) -> int | None:
    """Return the line of a dotted key of too many parts; to be asked first, as reading such a key takes for ever."""
    found = next((token for token in _TOKENS.finditer(text) if token["key"]), None)
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
