"""How many cores a client has in each round: K, and what interventions make of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fl.arrays import IntArray

_MOST = 1_024


def cores_by_round(data: Mapping[str, Any], rounds: int) -> IntArray:
    """Return K in each round [N]."""
    changes = [it for it in data.get("interventions", ()) if it["key"] == "clients.cores"]
    cores = np.full(rounds, _checked(data["clients"]["cores"]), dtype=np.int64)
    for change in sorted(changes, key=lambda change: int(change["round"])):
        cores[change["round"] - 1 :] = _checked(change["value"])
    return cores


def _checked(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= _MOST:
        raise ValueError(f"clients.cores: {value!r} is not a whole number from 1 to {_MOST}")
    return value
