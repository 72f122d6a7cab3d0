"""Dotted keys, as ``--set`` and ``[sweep]`` use them: services by name (``services.mnist.budget``)."""

from collections.abc import Mapping, Sequence
from typing import Any

from flmarket.core.names import unknown
from scenarios.file.problems import Path, quoted


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
        return ("services", *_service_address(data, rest))
    return _parts(key)


def _parts(key: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in key.split("."))
    if not all(parts):
        raise AddressError(f"{quoted(key)} is not a dotted key such as clients.cores")
    return parts


def _service_address(data: Mapping[str, Any], rest: str) -> tuple[int | str, ...]:
    names = service_names(data)
    # Names may hold dots; of two that fit, the longer one is meant.
    for name in sorted(names, key=len, reverse=True):
        if rest.startswith(f"{name}."):
            return (names[name], *_parts(rest.removeprefix(f"{name}.")))
    if rest in names or not rest:
        raise AddressError("must name a service and one of its keys: services.NAME.budget")
    given = rest.rpartition(".")[0] or rest
    raise AddressError(unknown("service", given, names))


def service_names(data: Mapping[str, Any]) -> dict[str, int]:
    """Return the place of each service that has a usable name."""
    services = data.get("services")
    if not isinstance(services, Sequence):
        return {}
    named = [(i, service.get("name")) for i, service in enumerate(services) if isinstance(service, Mapping)]
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
