"""Names for keys, by which a user's settings change them."""

from collections.abc import Iterable
from dataclasses import replace

from textual.binding import Binding, BindingType


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
