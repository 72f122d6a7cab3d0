"""The parts of a scenario's data that are fine, so that checks of several keys can run in spite of what is broken."""

from collections.abc import Collection, Mapping
from typing import Any

from scenarios.file.problems import Path


class Readable:
    """The parts of a scenario's data in which no problem was found."""

    def __init__(self, data: Mapping[str, Any], broken: Collection[Path]) -> None:
        self._data = data
        self._broken = frozenset(broken)
        self._around = frozenset(path[:depth] for path in broken for depth in range(len(path) + 1))

    def get(self, *path: str | int) -> Any:
        """Return a value, or None where it is absent, or something in it or around it is broken."""
        return None if path in self._around else self._walk(path)

    def items(self, *path: str | int) -> list[tuple[int, Any]]:
        """Return the places and values of a list's items that are fine."""
        values = self._walk(path) or ()
        return [(i, value) for i, value in enumerate(values) if (*path, i) not in self._around]

    def places(self, *path: str | int) -> range:
        """Return the places of a list's items, fine or not."""
        return range(len(self._walk(path) or ()))

    def keys(self, *path: str | int) -> list[str]:
        """Return the keys of a table."""
        return list(self._walk(path) or ())

    def _walk(self, path: Path) -> Any:
        value: Any = self._data
        for depth, part in enumerate(path, start=1):
            if path[:depth] in self._broken or (isinstance(part, str) and part not in value):
                return None
            value = value[part]
        return value
