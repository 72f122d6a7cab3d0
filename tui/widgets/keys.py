"""The keys of a screen: their names, by which a user's settings change them, and which of them work now."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from textual.binding import ActiveBinding, Binding, BindingType
from textual.screen import Screen


def named(screen: str, bindings: Iterable[Binding]) -> list[BindingType]:
    """Return a screen's bindings with names such as ``market.next-round``: the screen and what help calls the key.

    Where two keys do the same, the first has the name.
    """
    found: list[BindingType] = []
    names: set[str] = set()
    for binding in bindings:
        name = f"{screen}.{'-'.join(binding.description.lower().replace('/', ' ').split())}"
        found.append(binding if name in names else replace(binding, id=name))
        names.add(name)
    return found


def working(screen: Screen[Any]) -> Iterator[ActiveBinding]:
    """Yield the keys that do something on a screen now and are described, each action once."""
    seen: set[str] = set()
    for active in screen.active_bindings.values():
        if active.enabled and active.binding.description and active.binding.action not in seen:
            seen.add(active.binding.action)
            yield active
