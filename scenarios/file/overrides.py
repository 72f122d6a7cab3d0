"""Dotted keys, as ``--set`` and ``[sweep]`` use them: services by name (``services.mnist.budget``), ``*`` for all."""

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import date, time
from typing import Any

from flmarket.core.names import unknown
from flmarket.core.text import printable
from scenarios.file.problems import Path, Problem, quoted

Overrides = Sequence[str] | Mapping[str, Any]
"""``key=value`` as ``--set`` takes it: services by name, the value in TOML, and what is not TOML is text. Or, from
Python, values by key."""


EVERY_SERVICE, GROUPS = "services.*.", "clients.groups."
COUNT = "services.count"
"""A key of sweeps: how many services there are, the first ones of the file."""


class AddressError(Exception):
    """A dotted key leads nowhere; the message explains why."""


def address(
    data: Mapping[str, Any],  # the scenario, of which only the services' names are looked at
    key: str,  # ``clients.cores``, ``services.mnist.budget``, ``sweep.clients.cores``
) -> Path:
    """Return where a dotted key leads."""
    section, _, rest = key.partition(".")
    if section == "sweep" and rest:
        return ("sweep", rest)
    if section not in data and section in service_names(data):
        raise AddressError(f"unknown key; did you mean {f'services.{key}'!r}?")
    if section == "services":
        return ("services", *_address_in(service_names(data), "service", "services", rest))
    if section == "streams":
        return ("streams", *_address_in(stream_names(data), "stream", "streams", rest))
    if key.startswith(GROUPS):
        return ("clients", "groups", *_address_in(group_names(data), "group", GROUPS[:-1], key.removeprefix(GROUPS)))
    return _parts(key)


def addresses(data: Mapping[str, Any], key: str) -> list[Path]:
    """Return where a dotted key leads: to several places if it is one of all services, ``services.*.budget``."""
    tables: list[Path] = [("services", i) for i in service_names(data).values()]
    tables += [("streams", i) for i in stream_names(data).values()]
    if not key.startswith(EVERY_SERVICE) or not tables:
        return [address(data, key)]
    return [(*table, *_parts(key.removeprefix(EVERY_SERVICE))) for table in tables]


def _parts(key: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in key.split("."))
    if not all(parts):
        raise AddressError(f"{quoted(key)} is not a dotted key such as clients.cores")
    return parts


def _address_in(names: Mapping[str, int], kind: str, table: str, rest: str) -> tuple[int | str, ...]:
    """Return where the rest of a key leads in a list of tables that have names."""
    # Names may hold dots; of two that fit, the longer one is meant.
    for name in sorted(names, key=len, reverse=True):
        if rest.startswith(f"{name}."):
            return (names[name], *_parts(rest.removeprefix(f"{name}.")))
    if rest in names or not rest:
        example = "count" if kind == "group" else "budget"
        raise AddressError(f"must name a {kind} and one of its keys: {table}.NAME.{example}")
    given = rest.rpartition(".")[0] or rest
    raise AddressError(unknown(kind, given, names))


def service_names(data: Mapping[str, Any]) -> dict[str, int]:
    """Return the place of each service that has a usable name."""
    return _places(data.get("services"))


def service_tables(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of services, and those of streams, of a valid scenario."""
    return [*data["services"], *data.get("streams", ())]


def stream_names(data: Mapping[str, Any]) -> dict[str, int]:
    """Return the place of each stream of services that has a usable name."""
    return _places(data.get("streams"))


def group_names(data: Mapping[str, Any]) -> dict[str, int]:
    """Return the place of each group of clients that has a usable name."""
    clients = data.get("clients")
    return _places(clients.get("groups") if isinstance(clients, Mapping) else None)


def _places(tables: object) -> dict[str, int]:
    if not isinstance(tables, Sequence):
        return {}
    named = [(i, table.get("name")) for i, table in enumerate(tables) if isinstance(table, Mapping)]
    return {name: i for i, name in reversed(named) if isinstance(name, str) and name}


def put(data: Mapping[str, Any], path: Path, value: Any) -> list[Path]:
    """Set a value, making the tables on the way."""
    *way, last = path
    table: Any = data
    new: list[Path] = []
    for depth, part in enumerate(way, start=1):
        if isinstance(part, str) and part not in table:
            table[part] = {}
            new.append(path[:depth])
        table = table[part]
        if isinstance(part, str) and isinstance(table, list | tuple) and isinstance(path[depth], int):
            continue
        if not isinstance(table, dict):
            raise AddressError(f"{part} is not a table")
    table[last] = value
    return [*new, path]


def apply(
    data: dict[str, Any],  # as ``tomllib`` reads it, with a flat ``sweep``; changed in place
    overrides: Overrides,  # what to set
) -> tuple[dict[Path, str], list[Problem]]:
    """Set values in a scenario's data, in order; return the option behind each place that was set, and problems."""
    options: dict[Path, str] = {}
    problems = []
    given = overrides.items() if isinstance(overrides, Mapping) else ((text, None) for text in overrides)
    for override, python in given:
        option = printable(f"{override} = {python!r}" if isinstance(overrides, Mapping) else str(override))
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
    paths = addresses(data, key)
    if (swept := _shared(data, paths, data.get("sweep"))) is not None:
        raise AddressError(f"is swept by this scenario: set sweep.{swept}=[...] instead")
    runs = data.get("runs")
    if isinstance(runs, list) and any(_shared(data, paths, run) is not None for run in runs):
        raise AddressError("is in this scenario's [[runs]], which it would not change: set runs=[] before it")
    return [place for path in paths for place in put(data, path, deepcopy(value))]  # a table of its own for each


def _shared(data: Mapping[str, Any], paths: Sequence[Path], table: object) -> str | None:
    """Return the key of a sweep, or of a table of ``[[runs]]``, that leads to one of the places."""
    for key in table if isinstance(table, dict) else ():
        with suppress(AddressError):  # the checks of the scenario say what is wrong with it
            if not set(paths).isdisjoint(addresses(data, key)):
                return str(key)
    return None


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
