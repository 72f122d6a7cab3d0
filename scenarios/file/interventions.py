"""Checks of ``[[interventions]]``: what can be changed in the middle of a run, and to what."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from flmarket.core.names import suggest, unknown_plugin
from scenarios.file.addresses import AddressError, address
from scenarios.file.clients import Clients
from scenarios.file.option_checks import too_large
from scenarios.file.problems import Finding, Path, number, quoted, shown
from scenarios.file.readable import Readable
from scenarios.file.schema import Market, Service
from scenarios.file.switches import MECHANISM, PLAYER, player, rules
from scenarios.file.tables import Table
from scenarios.file.wording import findings

KEYS = ("services.NAME.budget", "services.NAME.policy", "clients.cores", "clients.offline", MECHANISM)


class Known(Protocol):
    """The policies and mechanisms that a scenario may name."""

    @property
    def policies(self) -> Collection[str]:
        """Names of the policies."""

    @property
    def mechanisms(self) -> Collection[str]:
        """Names of the mechanisms."""


def check_interventions(
    readable: Readable,  # the scenario's data
    known: Known | None,  # what they may name; None for a run that was played before, which may name anything
) -> Iterator[Finding]:
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
        if limits == "offline":
            message = _offline(readable, entry["value"])
        elif isinstance(limits, str):
            yield from _switched(readable, limits, entry["value"], known, (*place, "value"))
            continue
        else:
            message = _outside(limits, entry["value"])
        if message:
            yield Finding((*place, "value"), message)


def _limits(readable: Readable, key: str) -> tuple[type[Table], str] | str:
    """Return the table and the field whose limits a new value has to keep, or what else it is, by its last word."""
    if key in ("clients.offline", MECHANISM):
        return key.rpartition(".")[2]
    if key == "clients.cores":
        return Clients, "cores"
    if key.startswith("services."):
        names = [{"name": readable.get("services", i, "name")} for i in readable.places("services")]
        path = address({"services": names}, key)
        if path[2:] == ("budget",):
            return Service, "budget"
        if path[2:] == ("policy",):
            return "policy"
    raise AddressError(f"{quoted(key)} cannot be changed in the middle of a run{suggest(key, KEYS)}")


def _switched(readable: Readable, kind: str, value: Any, known: Known | None, place: Path) -> Iterator[Finding]:
    """Yield what is wrong with a new policy or mechanism; its options are tried before a run."""
    table, keys = (Service, PLAYER) if kind == "policy" else (Market, ("mechanism", "options"))
    if isinstance(value, Mapping):
        if kind not in value:
            yield Finding(place, f'must name the {kind}, such as {{ {kind} = "..." }}')
            return
        if unknown := [key for key in value if key not in keys]:
            yield Finding(place, f"has an unknown key {quoted(unknown[0])}; it takes {', '.join(keys)}")
            return
    elif not isinstance(value, str):
        also = "NAME, NAME:CHECKPOINT" if kind == "policy" else "NAME"
        yield Finding(place, f"must be {also} or a table with {', '.join(keys)}, not {shown(value)}")
        return
    elif kind == "policy" and ":" in value and not value.partition(":")[2]:
        yield Finding(place, "the path of a checkpoint must follow the colon: NAME:CHECKPOINT")
        return
    given = player(value) if kind == "policy" else rules(value)
    wrong = {key: message for key, item in given.items() if (message := _outside((table, key), item))}
    if wrong:
        yield from (Finding(place, f"{key} {message}") for key, message in wrong.items())
        return
    names: Collection[str] = () if known is None else known.policies if kind == "policy" else known.mechanisms
    if known is not None and given[kind] not in names:
        yield Finding(place, unknown_plugin(kind, given[kind], names))
    elif known is not None and kind == "mechanism":
        yield from too_large(readable, given[kind], place)


def _outside(limits: tuple[type[Table], str], value: Any) -> str | None:
    """Return what is wrong with a value, in the words that the key itself gets."""
    table, name = limits
    try:
        table.__pydantic_validator__.validate_assignment(table.model_construct(), name, value)
    except ValidationError as error:
        path: Path = ("services", 0, name) if table is Service else (table.__name__.lower(), name)
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
