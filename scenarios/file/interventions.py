"""Checks of ``[[interventions]]``: what can be changed in the middle of a run, and to what."""

from collections.abc import Iterator
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fl.names import suggest
from scenarios.file.addresses import AddressError, address
from scenarios.file.clients import Clients
from scenarios.file.problems import Finding, Path, number, quoted, shown
from scenarios.file.readable import Readable
from scenarios.file.schema import Service
from scenarios.file.tables import Table
from scenarios.file.wording import findings

KEYS = ("services.NAME.budget", "clients.cores", "clients.offline")


def check_interventions(readable: Readable) -> Iterator[Finding]:
    """Yield what is wrong with the interventions, beyond the types of their keys."""
    first: dict[tuple[Any, Any], Path] = {}
    rounds = readable.get("rounds")
    for i, entry in readable.items("interventions"):
        place: Path = ("interventions", i)
        if rounds is not None and entry["round"] > rounds:
            yield Finding(
                (*place, "round"), f"must be at most the {number(rounds)} rounds, not {number(entry['round'])}"
            )
        same = entry["round"], entry["key"]
        if first.setdefault(same, place) != place:
            yield Finding(
                (*place, "key"), "changes the same key in the same round as another intervention", see=first[same]
            )
        try:
            limits = _limits(readable, entry["key"])
        except AddressError as error:
            yield Finding((*place, "key"), str(error))
            continue
        message = _offline(readable, entry["value"]) if limits is None else _outside(limits, entry["value"])
        if message:
            yield Finding((*place, "value"), message)


def _limits(readable: Readable, key: str) -> tuple[type[Table], str] | None:
    """Return the table and the field whose limits a new value has to keep; None for clients.offline."""
    if key == "clients.offline":
        return None
    if key == "clients.cores":
        return Clients, "cores"
    if key.startswith("services."):
        names = [{"name": readable.get("services", i, "name")} for i in readable.places("services")]
        path = address({"services": names}, key)
        if path[2:] == ("budget",):
            return Service, "budget"
    raise AddressError(f"{quoted(key)} cannot be changed in the middle of a run{suggest(key, KEYS)}")


def _outside(limits: tuple[type[Table], str], value: Any) -> str | None:
    """Return what is wrong with a value, in the words that the key itself gets."""
    table, name = limits
    try:
        table.__pydantic_validator__.validate_assignment(table.model_construct(), name, value)
    except ValidationError as error:
        path: Path = ("clients", name) if table is Clients else ("services", 0, name)
        own = [{**found, "loc": path} for found in error.errors(include_url=False) if found["loc"][0] == name]
        return findings(cast("list[ErrorDetails]", own))[0].message if own else None
    return None


def _offline(readable: Readable, value: Any) -> str | None:
    count = readable.get("clients", "count")
    if not isinstance(value, list | tuple):
        return f"must be a list of clients, not {shown(value)}"
    for client in value:
        if not isinstance(client, int) or isinstance(client, bool):
            return f"must be a list of clients, whole numbers, not of {shown(client)}"
        if client < 0 or (count is not None and client >= count):
            last = "" if count is None else f"; clients are 0 to {number(count - 1)}"
            return f"unknown client {number(client)}{last}"
    if len(set(value)) < len(value):
        return "names a client twice"
    return None
