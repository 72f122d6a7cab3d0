"""From a scenario to what its market is made of, without training anything (and without torch).

A round's data and conditions follow from the scenario, the seed and the round alone, and so do bids, unless clients
learn: then they follow from what earlier offers came to, too, which the logs hold. So a screen that replays a run, or
watches one in another process, sees the whole order book although the logs hold only the offers.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from des.behaviour import BehaviourError
from des.clients.population import Qualities
from des.clock import Microseconds
from des.cost import CostError
from des.log_records import OfferReport
from des.money import to_micro
from des.schedule import Conditions
from flmarket.core.errors import InputError
from scenarios.build import population_of, schedule_of
from scenarios.file.interventions import at, mechanisms_over_time
from scenarios.file.schema import Scenario


class World:
    """The world that every service and client of a scenario meets under one seed.

    Bids depend on how many labels the data sets have, so each must be known here, or its number be given; the clients'
    behaviour must be known, too. Policies, models and the mechanism need not be.
    """

    def __init__(
        self,
        scenario: Scenario,  # what is played
        seed: int,  # the run's seed
        # L by data set, where a run has recorded it; of others, what they have now
        labels: Mapping[str, int] | None = None,
    ) -> None:
        try:
            self._population = population_of(scenario, seed, labels)
        except (ValueError, BehaviourError, CostError) as error:  # of a run whose scenario.toml was changed
            raise InputError(f"scenario {scenario.name!r}: clients: {error}") from error
        self.mechanisms = {scenario.cleared_by(rules) for rules in mechanisms_over_time(scenario)}
        self.scenario, self._market = scenario, scenario.market
        self.once = scenario.once  # whether what clients a service had to choose from follows from its round alone
        clock = scenario.timeline
        self._slot = to_micro(clock.period) if clock.decide and clock.period else None
        self._schedule = schedule_of(scenario, seed)
        self._names = [service.name for service in scenario.services]
        self._closed = 0  # the last round that clients have learned from
        # Screens look at the same few rounds again and again.
        self._drawn = lru_cache(maxsize=16)(self._population.draw)

    def slot_of(self, round_: int, start: Callable[[], Microseconds]) -> int:
        """Return the number of the slot whose data and bids a round has, by when it began."""
        return round_ if self._slot is None else start() // self._slot + 1

    def qualities(
        self,
        round_: int,  # n, from 1; where slots have several rounds, the number of the slot
        # returns the offers of an earlier round, with what came of them. Needed where clients learn, which they then do
        # again up to this round.
        offers: Callable[[int], Iterable[OfferReport]] | None = None,
    ) -> Qualities:
        """Return the data, DQI and bids [M, C] of a round."""
        if self._population.learns:
            if offers is None:
                raise ValueError("clients learn: their bids follow from the offers of earlier rounds")
            self._learn(round_ - 1, offers)
        return self._drawn(round_)

    def _learn(self, last: int, offers: Callable[[int], Iterable[OfferReport]]) -> None:
        if self._closed > last:
            self._population.reset()
            self._closed = 0
        for number in range(self._closed + 1, last + 1):
            paid = ((offer.service, offer.client, offer.paid) for offer in offers(number))
            self._population.close(number, paid, self._names)
            self._closed = number

    def value_sets(self, round_: int) -> list[bool]:
        """Return for each service whether it values clients as a set (``learning.client_selection.set_worth``)."""
        return [it.policy_options.get("together") == "union" for it in at(self.scenario, round_).services]

    @property
    def respond(self) -> bool:
        """Whether clients answer how much of the work they do."""
        return self._population.spec.response is not None

    def mechanism(self, round_: int) -> str:
        rules = self.conditions(round_).rules
        now = self._market if rules is None else self._market.model_copy(update={"mechanism": rules[0]})
        return self.scenario.cleared_by(now)

    def conditions(self, round_: int, slot: int | None = None) -> Conditions:
        """Return the budgets, K, who is offline, and the mechanism if it has changed, in a round, of a slot."""
        return self._schedule.at(round_, slot)
