"""The conditions of each round of a run, worked out again from its scenario. Shares no code with ``des``."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from des.availability import Interval
from des.mechanisms.mechanism import DEFAULT
from des.money import MICRO, Micro, to_micro
from scenarios.file.interventions import at, in_order
from scenarios.file.schema import Market, Scenario, Service


class Conditions(NamedTuple):
    """K, what each service may offer in the round, who is offline, who decides for each service, and the rules."""

    cores: int
    budgets: Mapping[str, float]
    offline: Sequence[int]
    services: Mapping[str, Service]
    market: Market

    @property
    def paper(self) -> bool:
        return self.market.mechanism == DEFAULT


def conditions(
    scenario: Scenario,  # what was played
    number: int,  # the round
    spent: Mapping[str, Micro],  # what each service spent in earlier rounds, micro-units
    # when clients are there; None if they always are, or if it is not known any more
    intervals: Sequence[Interval] | None = None,
) -> Conditions:
    """Return the conditions of a round."""
    then, offline = at(scenario, number), []
    for change in in_order(scenario):
        if change.round <= number and change.key == "clients.offline":
            offline = list(change.value)
    budgets = {service.name: service.budget for service in then.services}
    if intervals is not None:
        there = {client for client, first, last in intervals if first <= number <= last}
        offline = sorted({*offline} | ({*range(scenario.clients.count)} - there))
    for service in scenario.services:
        if service.arrival > number:
            budgets[service.name] = 0
        elif service.total_budget is not None:
            left = to_micro(service.total_budget) - spent.get(service.name, 0)
            budgets[service.name] = min(budgets[service.name], left / MICRO)
    services = {service.name: service for service in then.services}
    return Conditions(then.clients.cores, budgets, offline, services, then.market)
