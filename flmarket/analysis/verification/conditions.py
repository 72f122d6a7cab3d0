"""The conditions of each round of a run, worked out again from its scenario. Shares no code with ``des``."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from des.availability import Presence
from des.mechanism import DEFAULT
from des.money import Micro, to_micro
from scenarios.file.interventions import at, offline_at
from scenarios.file.schema import Scenario


class Conditions(NamedTuple):
    """The conditions of a round."""

    scenario: Scenario  # after the interventions up to the round
    budgets: Mapping[str, Micro]  # what each service may offer in the round
    offline: frozenset[int]  # the clients that cannot be selected

    @property
    def cores(self) -> int:
        """K."""
        return self.scenario.clients.cores

    @property
    def paper(self) -> bool:
        """Whether the round is cleared by the paper's mechanism."""
        return self.scenario.market.mechanism == DEFAULT


def conditions(
    scenario: Scenario,  # what was played
    number: int,  # the round
    spent: Mapping[str, Micro],  # what each service spent in earlier rounds
    # when clients are there; None if they always are, or if it is not known any more
    intervals: Sequence[Presence] | None = None,
) -> Conditions:
    then = at(scenario, number)
    budgets = {service.name: to_micro(service.budget) for service in then.services}
    for service in scenario.services:
        if service.arrival > number:
            budgets[service.name] = 0
        elif service.total_budget is not None:
            left = to_micro(service.total_budget) - spent[service.name]
            budgets[service.name] = min(budgets[service.name], left)
    offline = offline_at(scenario, number)
    if intervals is not None:
        there = {client for client, first, last in intervals if first <= number <= last}
        offline |= {*range(scenario.clients.count)} - there
    return Conditions(then, budgets, frozenset(offline))
