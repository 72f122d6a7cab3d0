"""What each round of a run is played under, worked out again from its scenario. Shares no code with ``des``."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from des.availability import Interval
from des.money import MICRO, Micro, to_micro
from scenarios.file.schema import Scenario


class Conditions(NamedTuple):
    """K, what each service may offer in the round, and who is offline."""

    cores: int
    budgets: Mapping[str, float]
    offline: Sequence[int]


def conditions(
    scenario: Scenario, number: int, spent: Mapping[str, Micro], intervals: Sequence[Interval] | None = None
) -> Conditions:
    """Return the conditions of a round.

    Args:
        scenario: what was played.
        number: the round.
        spent: what each service spent in earlier rounds, micro-units.
        intervals: when clients are there; None if they always are, or if it is not known any more.
    """
    cores, offline = scenario.clients.cores, []
    budgets = {service.name: service.budget for service in scenario.services}
    for change in sorted(scenario.interventions, key=lambda change: change.round):
        if change.round > number:
            break
        if change.key == "clients.cores":
            cores = change.value
        elif change.key == "clients.offline":
            offline = list(change.value)
        else:
            budgets[change.key.removeprefix("services.").removesuffix(".budget")] = change.value
    if intervals is not None:
        there = {client for client, first, last in intervals if first <= number <= last}
        offline = sorted({*offline} | ({*range(scenario.clients.count)} - there))
    for service in scenario.services:
        if service.arrival > number:
            budgets[service.name] = 0
        elif service.total_budget is not None:
            left = to_micro(service.total_budget) - spent.get(service.name, 0)
            budgets[service.name] = min(budgets[service.name], left / MICRO)
    return Conditions(cores, budgets, offline)
