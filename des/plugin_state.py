"""The memory of mechanisms and behaviours from round to round, as a checkpoint stores it."""

import json
from collections.abc import Mapping
from typing import Any

from des.behaviour import Behaviour
from des.mechanism import Mechanism
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import method


def remembered(thing: Mechanism | Behaviour, kind: str, error: type[RunError]) -> dict[str, Any]:
    state = thing.state()
    try:
        stored: object = json.loads(json.dumps(state, allow_nan=False))
    except (TypeError, ValueError):
        stored = None
    if not isinstance(state, Mapping) or stored != state:
        where = f"{kind} {method(thing, 'state')}"
        raise error(f"{where} must return what JSON can store: texts, numbers, lists, and dicts by text")
    return dict(state)
