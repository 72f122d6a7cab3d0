"""Scenarios and values written as TOML."""

import json
from functools import lru_cache
from typing import Any

import tomlkit

from scenarios.file.schema import Scenario


def dumps(scenario: Scenario) -> str:
    """Return a scenario as TOML with every default written out; it loads back to an equal scenario.

    What has no value (a deadline, say) is left out, as TOML has no word for it; of the keys of a regime see ``settled``
    in ``scenarios.loader``.
    """
    return _written(scenario.model_dump_json(exclude_none=True))


@lru_cache(maxsize=64)  # the runs of a batch differ in their seeds alone, and tomlkit takes 8 ms
def _written(scenario: str) -> str:
    return tomlkit.dumps(json.loads(scenario))


def value_text(value: Any) -> str:
    """Return a value as TOML, on one line."""
    array = tomlkit.array()
    array.append(value)
    return array.as_string()[1:-1]
