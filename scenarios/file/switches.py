"""What interventions make of a scenario: the policy of each service, the mechanism, the budgets and K of a round.

The value of ``services.NAME.policy`` is a policy as ``--policy`` takes it, ``NAME`` or ``NAME:CHECKPOINT``, or a table
of the keys that a service has for it; that of ``market.mechanism`` is a name, or a table of the keys of ``[market]``.
What such a value does not name has its default: the options of the policy or mechanism before are not kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scenarios.file.policy_choice import parted
from scenarios.file.schema import Intervention, Market, Scenario, Service
from scenarios.file.toml_text import value_text

MECHANISM = "market.mechanism"

PLAYER = ("policy", "checkpoint", "policy_options")  # the keys of a service that an intervention on its policy sets


def market_of(data: Mapping[str, Any]) -> str:
    """Return what a scenario and its forks have in common: all but who plays, and what changes in the middle."""
    services = [{key: value for key, value in it.items() if key not in PLAYER} for it in data["services"]]
    return repr({**data, "services": services, "interventions": []})


def player(value: Any) -> dict[str, Any]:
    """Return the keys of a service that a new policy sets, given the intervention's value."""
    if isinstance(value, Mapping):
        return {"checkpoint": None, "policy_options": {}, **value}
    name, checkpoint = parted(value)
    return {"policy": name, "checkpoint": checkpoint, "policy_options": {}}


def rules(value: Any) -> dict[str, Any]:
    """Return the keys of ``[market]`` that a new mechanism sets, given the intervention's value."""
    return {"options": {}, **value} if isinstance(value, Mapping) else {"mechanism": value, "options": {}}


def switched_service(change: Intervention) -> str | None:
    """Return the service whose policy an intervention changes; None if it changes something else."""
    named = change.key.startswith("services.") and change.key.endswith(".policy")
    return change.key.removeprefix("services.").removesuffix(".policy") if named else None


def in_order(scenario: Scenario) -> list[Intervention]:
    """Return the scenario's interventions, the earliest first."""
    return sorted(scenario.interventions, key=lambda change: change.round)


def at(scenario: Scenario, round_: int) -> Scenario:
    """Return the scenario as a round is played, after the interventions up to it.

    It names no clients that are offline: that is no key of a scenario.
    """
    for change in in_order(scenario):
        if change.round > round_:
            break
        scenario = _after(scenario, change)
    return scenario


def _after(scenario: Scenario, change: Intervention) -> Scenario:
    if change.key == "clients.offline":
        return scenario
    if change.key == MECHANISM:
        return scenario.model_copy(update={"market": scenario.market.model_copy(update=rules(change.value))})
    if change.key == "clients.cores":
        return scenario.model_copy(update={"clients": scenario.clients.model_copy(update={"cores": change.value})})
    name, _, key = change.key.removeprefix("services.").rpartition(".")
    if not name or key not in ("budget", "policy"):
        return scenario
    update = {"budget": change.value} if key == "budget" else player(change.value)
    services = [it.model_copy(update=update) if it.name == name else it for it in scenario.services]
    return scenario.model_copy(update={"services": tuple(services)})


def switches(scenario: Scenario) -> Iterator[tuple[int, Intervention, Scenario]]:
    """Yield the interventions that change a policy or the mechanism: their places, they, and the scenario after them.

    One that sets what is in force already changes nothing, and is left out.
    """
    places = {id(change): i for i, change in enumerate(scenario.interventions)}
    now = scenario
    for change in in_order(scenario):
        before, now = now, _after(now, change)
        name = switched_service(change)
        if (change.key == MECHANISM and before.market != now.market) or (
            name is not None
            and any(getattr(before.service(name), key) != getattr(now.service(name), key) for key in PLAYER)
        ):
            yield places[id(change)], change, now


def services_over_time(scenario: Scenario) -> Iterator[tuple[str, Service]]:
    """Yield every service as each of its policies plays it, with the name of that seat: ``mnist``, ``mnist@30``."""
    for service in scenario.services:
        yield service.name, service
    for _, change, later in switches(scenario):
        if (name := switched_service(change)) is not None:
            yield f"{name}@{change.round}", later.service(name)


def mechanisms_over_time(scenario: Scenario) -> Iterator[Market]:
    """Yield the rules of the market, as they are at first and after each change."""
    yield scenario.market
    for _, change, later in switches(scenario):
        if change.key == MECHANISM:
            yield later.market


def shock_words(
    changes: Sequence[Intervention],  # the fork's
    others: Iterable[Sequence[Intervention]],  # those of all runs that are compared, its own among them or not
) -> list[str]:
    """Return what a fork is called beside the runs that it is compared with: its changes that not all of them have."""
    rest = list(others)
    own = [change for change in changes if not all(change in other for other in rest)]
    return [f"{change.key} = {value_text(change.value)} from round {change.round}" for change in own]
