"""What identifies a run, as meta.json records it: read by all that judge runs, and checked once, here."""

from collections.abc import Mapping
from typing import Any

from flmarket.core.errors import InputError
from scenarios.logs.directory import META, RunDirectory

_TYPES: Mapping[str, type] = {"scenario": str, "hash": str, "policy": str, "seed": int, "sweep": dict, "point": int}
_LARGEST = 2**63 - 1


def recorded(run: RunDirectory) -> Mapping[str, Any]:
    """Return the content of a run's meta.json, of which all that identifies the run is there and of its type."""
    meta = run.meta()
    for key, wanted in _TYPES.items():
        value: Any = meta.get(key)
        if type(value) is not wanted or (isinstance(value, int) and abs(value) > _LARGEST):  # True is an int, too
            raise InputError(f"{run.path / META}: has no usable {key!r}; run again with --fresh")
    return meta
