"""``[[interventions]]``: what they make of a scenario, round by round, and what is wrong with them.

The value of ``services.NAME.policy`` is a policy as ``--policy`` takes it, ``NAME`` or ``NAME:CHECKPOINT``, or a table
of the keys that a service has for it; that of ``market.mechanism`` is a name, or a table of the keys of ``[market]``.
What such a value does not name has its default: the options of the policy or mechanism before are not kept.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from des.money import to_micro
from flmarket.core.names import suggest
from scenarios.file.key_mistakes import findings
from scenarios.file.overrides import AddressError, address
from scenarios.file.policy_choice import parted
from scenarios.file.problems import Mistake, Path, number, quoted, shown
from scenarios.file.schema import Clients, Intervention, Market, Scenario, Service, TomlTable

CORES, OFFLINE, MECHANISM = "clients.cores", "clients.offline", "market.mechanism"

KEYS = ("services.NAME.budget", "services.NAME.policy", CORES, OFFLINE, MECHANISM)

FRESH: dict[str, dict[str, Any]] = {
    "policy": {"checkpoint": None, "policy_options": {}},
    "mechanism": {"options": {}},
}
"""The keys that a new policy or mechanism sets besides itself, unless its table does."""

PLAYER = ("policy", *FRESH["policy"])  # the keys of a service that an intervention on its policy sets


def in_order(scenario: Scenario) -> list[Intervention]:
    """Return the scenario's interventions, the earliest first."""
    return sorted(scenario.interventions, key=lambda change: change.round)


def service_of(key: str) -> str | None:
    """Return the service that a key of an intervention is of; None for another key."""
    return key.removeprefix("services.").rpartition(".")[0] if key.startswith("services.") else None


def at(scenario: Scenario, round_: int) -> Scenario:
    """Return the scenario as a round is played, after the interventions up to it.

    It names no clients that are offline: that is no key of a scenario.
    """
    for change in in_order(scenario):
        if change.round <= round_:
            scenario = _after(scenario, change)
    return scenario


def offline_at(scenario: Scenario, round_: int) -> set[int]:
    """Return the clients that interventions have taken offline in a round."""
    changes = [change.value for change in in_order(scenario) if change.key == OFFLINE and change.round <= round_]
    return set(changes[-1]) if changes else set()


def new_players(scenario: Scenario) -> Iterator[tuple[int, Intervention, Scenario]]:
    """Yield the interventions that change a policy or the mechanism: their places, they, and the scenario after them.

    One that sets what is in force already changes nothing, and is left out.
    """
    now = scenario
    for place, change in sorted(enumerate(scenario.interventions), key=lambda item: item[1].round):
        before, now = now, _after(now, change)
        is_new = before.market != now.market or before.services != now.services
        if is_new and (change.key == MECHANISM or change.key.endswith(".policy")):
            yield place, change, now


def services_over_time(scenario: Scenario) -> Iterator[tuple[str, Service]]:
    """Yield every service as each of its policies plays it, with the name of that seat: ``mnist``, ``mnist@30``."""
    for service in scenario.services:
        yield service.name, service
    for _, change, later in new_players(scenario):
        if (name := service_of(change.key)) is not None:
            yield f"{name}@{change.round}", later.service(name)


def mechanisms_over_time(scenario: Scenario) -> Iterator[Market]:
    """Yield the rules of the market, as they are at first and after each change."""
    yield scenario.market
    for _, change, later in new_players(scenario):
        if change.key == MECHANISM:
            yield later.market


def in_force(scenario: Scenario, key: str, round_: int) -> Any:
    """Return what a round is played with: the value of a key that interventions can change."""
    then, service = at(scenario, round_), service_of(key)
    if key == MECHANISM:
        return then.market.mechanism, then.market.options
    if key == CORES:
        return then.clients.cores
    if service is None:
        return offline_at(scenario, round_)
    if key.endswith(".budget"):
        return to_micro(then.service(service).budget)
    return [getattr(then.service(service), part) for part in PLAYER]


def market_of(data: Mapping[str, Any]) -> str:
    """Return what a scenario and its forks have in common: all but who plays, and what changes in the middle."""
    same = {key: value for key, value in data.items() if key != "interventions"}
    for name in ("services", "streams"):
        if name in same:
            same[name] = [{key: value for key, value in it.items() if key not in PLAYER} for it in same[name]]
    return repr(same)


def _after(scenario: Scenario, change: Intervention) -> Scenario:
    if change.key == OFFLINE:
        return scenario
    table, name = _target(scenario, change.key)
    after = table.model_copy(update=_update(name, change.value))
    match after:
        case Market():
            return scenario.model_copy(update={"market": after})
        case Clients():
            return scenario.model_copy(update={"clients": after})
    services = tuple(after if service is table else service for service in scenario.services)
    return scenario.model_copy(update={"services": services})


def _target(scenario: Scenario, key: str) -> tuple[TomlTable, str]:
    if key == CORES:
        return scenario.clients, "cores"
    if key == MECHANISM:
        return scenario.market, "mechanism"
    if key.startswith("services."):
        _, place, *below = address({"services": [{"name": it.name} for it in scenario.services]}, key)
        if below in (["budget"], ["policy"]):
            return scenario.services[int(place)], str(below[0])
    raise AddressError(f"{quoted(key)} cannot be changed in the middle of a run{suggest(key, KEYS)}")


def _update(name: str, value: Any) -> dict[str, Any]:
    if name not in FRESH:
        return {name: value}
    if isinstance(value, Mapping):
        return {**FRESH[name], **value}
    if name == "policy":
        name, checkpoint = parted(value)
        return {"policy": name, "checkpoint": checkpoint, "policy_options": {}}
    return {**FRESH[name], name: value}


def check_interventions(
    scenario: Scenario,
    names: Mapping[str, Collection[str]] | None,  # what they may name, by kind; None for anything
) -> Iterator[Mistake]:
    """Yield what is wrong with the interventions, beyond the types of their keys."""
    first: dict[tuple[int, str], Path] = {}
    for i, entry in enumerate(scenario.interventions):
        place: Path = ("interventions", i)
        if entry.round > scenario.rounds:
            yield Mistake(
                (*place, "round"), f"must be at most the {number(scenario.rounds)} rounds, not {number(entry.round)}"
            )
        same = first.setdefault((entry.round, entry.key), place)
        if same != place:
            yield Mistake((*place, "key"), "changes the same key in the same round as another intervention", see=same)
        try:
            problems = list(_value_problems(scenario, entry.key, entry.value, names))
        except AddressError as error:
            yield Mistake((*place, "key"), str(error))
            continue
        yield from (Mistake((*place, "value"), problem) for problem in problems)


def _value_problems(
    scenario: Scenario, key: str, value: Any, names: Mapping[str, Collection[str]] | None
) -> Iterator[str]:
    """Yield what is wrong with a new value: what its table would say of it. Options are tried before a run."""
    if key == OFFLINE:
        yield from _offline(scenario.clients.count, value)
        return
    table, name = _target(scenario, key)
    if name in FRESH and (problem := _shape_problem(name, value)):
        yield problem
        return
    try:
        type(table).model_validate({**table.model_dump(exclude_none=True), **_update(name, value)}, context=names)
    except ValidationError as error:
        for finding in findings(error):
            yield finding.message if finding.path == (name,) else f"{finding.path[0]}: {finding.message}"


def _shape_problem(name: str, value: Any) -> str | None:
    """Return why a value is neither the name of a policy or mechanism nor a table for one; None if it is."""
    keys = (name, *FRESH[name])
    if isinstance(value, Mapping):
        if name not in value:
            return f'must name the {name}, such as {{ {name} = "..." }}'
        unknown = [key for key in value if key not in keys]
        return f"has an unknown key {quoted(unknown[0])}; it takes {', '.join(keys)}" if unknown else None
    if not isinstance(value, str):
        return f"must be the name of a {name} or a table with {', '.join(keys)}, not {shown(value)}"
    if name == "policy" and value.endswith(":"):
        return "the path of a checkpoint must follow the colon: NAME:CHECKPOINT"
    return None


def _offline(count: int, value: Any) -> Iterator[str]:
    if not isinstance(value, list | tuple) or not all(type(client) is int for client in value):
        yield "must be a list of clients, whole numbers"
    elif outside := [client for client in value if not 0 <= client < count]:
        yield f"unknown client {number(outside[0])}; clients are 0 to {number(count - 1)}"
    elif len(set(value)) < len(value):
        yield "names a client twice"
