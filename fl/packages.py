"""What installed packages declare: their entry points. Imports none of them, and never fails."""

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any

from fl.blame import describe


def entries(group: str) -> list[EntryPoint]:
    try:
        return list(_installed(_places()).select(group=group))
    except Exception:  # a package's damaged metadata: the others must not suffer from it
        return [entry for distribution in distributions() for entry in _entries_of(distribution, group)]


def package(entry: EntryPoint) -> str | None:
    """Return the name and version of the package that declares an entry point, where they are known."""
    if entry.dist is None:
        return None
    try:
        return f"{entry.dist.name} {entry.dist.version}"
    except Exception:  # damaged metadata
        return None


def damaged(group: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each package that mentions the group but whose entry points cannot be read, and why."""
    try:
        _installed(_places())
    except Exception:
        for distribution in distributions():
            try:
                distribution.entry_points.select(group=group)
            except Exception as error:
                if group in (distribution.read_text("entry_points.txt") or ""):
                    yield str(distribution.name), f"its entry_points.txt cannot be read: {describe(error)}"


@lru_cache(maxsize=1)
def _installed(places: tuple[tuple[str, int], ...]) -> Any:  # noqa: ARG001 - what is kept is kept for these
    """Return the entry points of all packages and groups, kept until a package comes or goes and changes a place.

    Reading them takes a while, and the form of the TUI checks its scenario, which needs them, at every pause in typing.
    """
    return entry_points()


def _places() -> tuple[tuple[str, int], ...]:
    """Return where packages are looked for, and when something was last added there or removed, in nanoseconds."""
    return tuple((place, _changed(place)) for place in sys.path)


def _changed(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def _entries_of(distribution: Any, group: str) -> list[EntryPoint]:
    try:
        return list(distribution.entry_points.select(group=group))
    except Exception:  # damaged() reports it
        return []
