"""The memory of mechanisms and behaviours from round to round, as a checkpoint stores it."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import method


class Remembers(Protocol):
    """A mechanism or a behaviour."""

    def state(self) -> Mapping[str, Any]:
        """Return what it has noted of the rounds so far, as plain data."""


def remembered(thing: Remembers, kind: str, error: type[RunError]) -> dict[str, Any]:
    state = thing.state()
    try:
        stored: object = json.loads(json.dumps(state, allow_nan=False))
    except (TypeError, ValueError):
        stored = None
    if not isinstance(state, Mapping) or stored != state:
        where = f"{kind} {method(thing, 'state')}"
        raise error(f"{where} must return what JSON can store: texts, numbers, lists, and dicts by text")
    return dict(state)
