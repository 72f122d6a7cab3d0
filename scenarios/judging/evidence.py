"""A run's logs as the rules of ``flmarket verify`` see them: rows of values, and the scenario they should follow."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from scenarios.file.schema import Scenario

Row = Mapping[str, Any]
"""One line of a table: the values of its columns. Money in micro-units, None where it is empty."""


class Conditions(NamedTuple):
    """K, the services' budgets, and who is offline."""

    cores: int
    budgets: Mapping[str, float]
    offline: Sequence[int]


@dataclass(frozen=True)
class Logs:
    """A run's logs, and the scenario they should follow."""

    scenario: Scenario
    rounds: Sequence[Row]
    offers: Sequence[Row]
    events: Sequence[Row]

    @cached_property
    def offers_of(self) -> Mapping[tuple[int, str], list[Row]]:
        """All offers, by round and service."""
        return _by_round_and_service(self.offers)

    @cached_property
    def events_of(self) -> Mapping[tuple[int, str | None], list[Row]]:
        """All events, by round and service; those that happen to no service have None."""
        return _by_round_and_service(self.events)

    def conditions(self, number: int) -> Conditions:
        """Return what a round is played under, after the interventions up to it."""
        if number not in self._conditions:
            self._conditions[number] = _conditions(self.scenario, number)
        return self._conditions[number]

    @cached_property
    def _conditions(self) -> dict[int, Conditions]:
        return {}


def _conditions(scenario: Scenario, number: int) -> Conditions:
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
    return Conditions(cores, budgets, offline)


def _by_round_and_service(rows: Sequence[Row]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["round"], row["service"]].append(row)
    return found
