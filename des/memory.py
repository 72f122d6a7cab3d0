"""What mechanisms and behaviours remember from round to round, as a checkpoint stores it; plug-ins may get it wrong."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from fl.blame import Foreign, blame, represent
from fl.errors import RunError


class Remembers(Protocol):
    """A mechanism or a behaviour."""

    def state(self) -> Mapping[str, Any]:
        """Return what it has noted of the rounds so far, as plain data."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what ``state`` returned."""


def remembered(thing: Remembers, kind: str, error: type[RunError]) -> dict[str, Any]:
    """Return what a mechanism or behaviour remembers."""
    where = f"{kind} {type(thing).__name__}"
    with Foreign(lambda found: error(f"{where}: failed to return its state: {represent(found)}{blame(found)}")):
        state = dict(thing.state())
        same = json.loads(json.dumps(state, allow_nan=False)) == state
    if not same:
        raise error(f"{where}: state() must return what JSON can store: texts, numbers, lists, and dicts by text")
    return state


def recall(thing: Remembers, state: Mapping[str, Any], kind: str, error: type[RunError]) -> None:
    """Let a mechanism or behaviour take back what it remembered."""
    where = f"{kind} {type(thing).__name__}"
    with Foreign(lambda found: error(f"{where}: failed to restore its state: {represent(found)}{blame(found)}")):
        thing.restore(state)
