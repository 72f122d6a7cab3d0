"""``--set key=value``: the command line's last word on a scenario."""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, time
from typing import Any

from flmarket.core.printable import printable
from scenarios.file.addresses import AddressError, address, put
from scenarios.file.problems import Path, Problem

Overrides = Sequence[str] | Mapping[str, Any]
"""``key=value`` as ``--set`` takes it: services by name, the value in TOML, and what is not TOML is text. Or, from
Python, values by key."""


def apply(
    data: dict[str, Any],  # as ``tomllib`` reads it, with a flat ``sweep``; changed in place
    overrides: Overrides,  # what to set
) -> tuple[dict[Path, str], list[Problem]]:
    """Set values in a scenario's data, in order; return the option behind each place that was set, and problems."""
    options: dict[Path, str] = {}
    problems = []
    given = overrides.items() if isinstance(overrides, Mapping) else ((text, None) for text in overrides)
    for override, python in given:
        option = printable(f"{override} = {python!r}" if isinstance(overrides, Mapping) else f"--set {override}")
        try:
            key, value = _set_by(override, python, mapping=isinstance(overrides, Mapping))
            options |= dict.fromkeys(_set(data, key, value), option)
        except AddressError as error:
            problems.append(Problem(option, None, "", str(error)))
    return options, problems


def _set_by(override: object, python: Any, *, mapping: bool) -> tuple[str, Any]:
    if not isinstance(override, str):
        raise AddressError("is not a dotted key such as clients.cores")
    return (override, _plain(python)) if mapping else parse_assignment(override)


def _plain(value: Any) -> Any:
    """Return a value as TOML would give it: lists for sequences, and Python's own numbers for NumPy's."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    match value:
        case bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | range():
            return [_plain(item) for item in value]
    raise AddressError(f"a scenario cannot hold a value of type {type(value).__name__}")


def _set(data: dict[str, Any], key: str, value: Any) -> list[Path]:
    sweep, runs = data.get("sweep"), data.get("runs")
    if isinstance(sweep, dict) and key in sweep:
        raise AddressError(f"is swept by this scenario: set sweep.{key}=[...] instead")
    if isinstance(runs, list) and any(isinstance(run, dict) and key in run for run in runs):
        raise AddressError("is in this scenario's [[runs]], which it would not change")
    return put(data, address(data, key), value)


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return the key and the value of ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals:
        raise AddressError("must be KEY=VALUE")
    return key.strip(), read_value(value.strip())


def read_value(text: str) -> Any:
    """Read a TOML value; other text stands for itself, so that words need no second pair of quotes."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        if text.startswith(("[", "{", '"', "'")):
            raise AddressError("the value is not valid TOML") from None
        return text
    value = parsed["value"]
    # Several lines are not a second key, and no key holds a date.
    return text if len(parsed) > 1 or isinstance(value, date | time) else value
