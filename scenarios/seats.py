"""Changes in the middle of a run: of the market's conditions, and of the policies in its seats.

The market imposes its conditions itself (``des.schedule``). It knows no policies, so a runner seats a new one before
the round that it begins in (``Seats``). Callers that cannot follow such changes refuse the scenario here.
"""

from collections.abc import Callable, Iterator, MutableMapping

from des.market import Market
from des.money import to_micro
from des.schedule import Intervention
from flmarket.core.errors import InputError, RunError
from learning.policy import Policy, is_privileged
from scenarios.file.interventions import MECHANISM, at, new_players, service_of
from scenarios.file.schema import Scenario, Service


def interventions(scenario: Scenario) -> Iterator[Intervention]:
    """Yield what changes for the market in the middle of a run."""
    for entry in scenario.interventions:
        match entry.key.split("."):
            case ["clients", "cores"]:
                yield Intervention(entry.round, cores=entry.value)
            case ["clients", "offline"]:
                yield Intervention(entry.round, offline=frozenset(entry.value))
            case ["services", *name, "budget"]:
                yield Intervention(entry.round, budgets={".".join(name): to_micro(entry.value)})
    for _, change, later in new_players(scenario):
        if change.key == MECHANISM:
            yield Intervention(change.round, rules=(later.market.mechanism, later.market.options))


def require_no_new_players(scenario: Scenario, who: str) -> None:
    """Refuse a scenario in which a policy or the mechanism changes in the middle of a run."""
    for _, change, _ in new_players(scenario):
        raise InputError(
            f"{who} cannot follow a change of {change.key} in round {change.round}; remove it from [[interventions]]"
        )


def require_one_point(scenario: Scenario, who: str, instead: str) -> None:
    """Refuse a scenario that stands for several markets."""
    if scenario.sweep or scenario.runs:
        keys = ", ".join(scenario.sweep or scenario.runs[0])
        raise InputError(f"{who} one market, but scenario {scenario.name!r} varies {keys}; {instead}")


class Seats:
    """Seats the policies that begin in the middle of a run."""

    def __init__(
        self,
        scenario: Scenario,  # what is played
        market: Market,  # the run's
        policies: MutableMapping[str, Policy],  # those of the first round, by service; others take their places
        create: Callable[[Scenario, Service], Policy],  # creates each policy when its round comes
    ) -> None:
        self._scenario, self._market, self._policies, self._create = scenario, market, policies, create
        self._begins: dict[int, list[str]] = {}
        for _, change, _ in new_players(scenario):
            if (name := service_of(change.key)) is not None:
                self._begins.setdefault(change.round, []).append(name)

    def prepare(self, round_: int) -> None:
        """Seat the policies that begin in a round; the market is between rounds."""
        for name in self._begins.get(round_, ()):
            self._seat(name, round_)

    def resume(self, round_: int) -> None:
        """Seat those that play a round, in a market that has been built for the first one. As ``prepare``."""
        latest = {name: n for n in sorted(self._begins) if n <= round_ for name in self._begins[n]}
        for name, begun in latest.items():
            self._seat(name, begun)

    def _seat(self, name: str, round_: int) -> None:
        then = at(self._scenario, round_)
        service = then.service(name)
        try:
            self._policies[name] = self._create(then, service)
        except InputError as error:
            raise RunError(str(error)) from error  # it could be created when that was tried
        self._market.seat(name, service.policy, privileged=is_privileged(service.policy))
