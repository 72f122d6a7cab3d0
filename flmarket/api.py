"""Scenarios for notebooks and scripts: ``flmarket.load``, and what ``flmarket.play`` and ``flmarket.learn`` take.

It imports what reading a scenario takes, and no more.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from flmarket.core.errors import InputError
from flmarket.core.files import expanded
from scenarios.file.schema import Scenario
from scenarios.loader import load as load_scenario
from scenarios.running.run_options import Place


def load(scenario: Place, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Read and check a scenario.

    Args:
        scenario: a TOML file, or the name of a built-in scenario.
        overrides: values to change, by dotted key, services by name: ``{"services.mnist.budget": 15}``.

    Raises:
        ScenarioError: it cannot be read, or something in it is wrong; names every problem with its line. An InputError.
            Whether policies take their options is checked by ``run``, which may replace the policies.
    """
    if isinstance(overrides, str):
        raise InputError(f"overrides = {overrides!r}: must be a mapping such as {{'rounds': 3}}")
    return load_scenario(_text(scenario), overrides or {})


def scenarios_of(
    given: Place | Scenario | Sequence[Place | Scenario], values: Mapping[str, Any] | None = None
) -> list[Scenario]:
    """Return one scenario, or several, with other values in files, by key. Errors as in ``scenario_of``."""
    if isinstance(given, str | PathLike | Scenario) or not isinstance(given, Iterable):
        return [scenario_of(given, values)]
    return [scenario_of(one, values) for one in given]


def scenario_of(given: Place | Scenario, values: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario.

    Raises:
        InputError: it is something else, or cannot be read.
    """
    if isinstance(given, str | PathLike):
        return load(given, values)
    if not isinstance(given, Scenario):
        raise InputError(
            f"scenario = {str(given)[:80]!r}: must be a file, the name of a built-in one, or what flmarket.load returns"
        )
    return given


def _text(place: Place) -> str:
    """Return a place as text, so that built-in names and paths are distinguished as on the command line."""
    text = os.fspath(place)
    return str(expanded(text)) if text.startswith("~") else text
