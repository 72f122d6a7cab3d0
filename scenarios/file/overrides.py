"""``--set key=value``: the command line's last word on a scenario."""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, time
from typing import Any

from fl.errors import InputError
from scenarios.file.addresses import AddressError, address, put
from scenarios.file.nesting import LARGEST_DEPTH, too_deep
from scenarios.file.problems import Path, Problem, printable
from scenarios.file.toml_text import value_text


def apply(data: dict[str, Any], overrides: Sequence[str]) -> tuple[dict[Path, str], list[Problem]]:
    """Set values in a scenario's data, in order.

    Args:
        data: as ``tomllib`` reads it, with a flat ``sweep``; changed in place.
        overrides: each ``key=value``: services by name, the value in TOML; what is not TOML is taken as text.

    Returns:
        the option (``--set key=value``) behind each path that was set; and the options that could not be followed.
    """
    options: dict[Path, str] = {}
    problems = []
    for override in overrides:
        option = printable(f"--set {override}")
        try:
            key, value = _parse(override)
            options |= dict.fromkeys(_set(data, key, value), option)
        except AddressError as error:
            problems.append(Problem(option, None, "", str(error)))
    return options, problems


def option(key: str, value: Any) -> str:
    """Return ``key=value`` as ``--set`` takes it, for a value of Python's.

    Raises:
        InputError: TOML has no such value.
    """
    plain = value.item() if hasattr(value, "item") else value  # a number of NumPy's
    if not isinstance(plain, bool | int | float | str | Mapping | Sequence):
        raise InputError(f"{key}: a {type(value).__name__} cannot stand in a scenario")
    return f"{key}={value_text(plain)}"


def _set(data: dict[str, Any], key: str, value: Any) -> list[Path]:
    """Set a value and return the paths that are new or changed."""
    sweep = data.get("sweep")
    if isinstance(sweep, dict) and key in sweep:
        raise AddressError(f"is swept by this scenario: set sweep.{key}=[...] instead")
    runs = data.get("runs")
    if isinstance(runs, list) and any(isinstance(run, dict) and key in run for run in runs):
        raise AddressError("is in this scenario's [[runs]], which it would not change")
    return put(data, address(data, key), value)


def _parse(override: str) -> tuple[str, Any]:
    key, equals, text = override.partition("=")
    if not equals:
        raise AddressError("must be key=value")
    try:
        override.encode()
    except UnicodeEncodeError:
        raise AddressError("must be valid Unicode text") from None
    value = _value(text.strip())
    if too_deep(value) is not None:
        raise AddressError(f"holds lists and tables more than {LARGEST_DEPTH} deep")
    return key.strip(), value


def _value(text: str) -> Any:
    """Read a TOML value; text that is none stands for itself, so that words need no second pair of quotes."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        if text.startswith(("[", "{", '"', "'")):
            raise AddressError("the value is not valid TOML") from None
        return text
    value = parsed["value"]
    # Text of several lines is no second key; and no key holds a date.
    return text if len(parsed) > 1 or isinstance(value, date | time) else value
