"""The players of a sampled market, who report what they like and else do the straightforward thing.

A client reports its bids; a service reports what clients are worth to it. From the reports follow the offers, by one
rule: a service names the clients whose reported value is at least what they ask, the best value per ask first, and
offers the value, as far as its budget goes (all of them, where the mechanism keeps budgets). Where the mechanism asks
for prices of its own, it offers these. Whoever is refused and may offer again does so by the same rule, with what is
left. Offers are taken, steps made and rounds cleared by the market's own code.
"""

from dataclasses import dataclass

import numpy as np
import simpy

from des.allocation import NO_CORE
from des.award import Platform
from des.bidding import Bidding
from des.client import Timeline
from des.conditions import Conditions
from des.journal import Journal
from des.ledger import Ledger
from des.mechanism import Mechanism, clear
from des.money import MICRO, Micro, MicroArray
from des.population import Held, Population, PopulationSpec, Qualities
from des.records import Offer
from des.round import Round
from des.service import ServiceSpec
from fl.arrays import BoolArray
from fl.quality import PUBLISHED
from learning.worth import name_best
from scenarios.certify.sampling import IMAGES, SampledMarket

LABELS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """What came of a round. Arrays are over services and clients; money is in micro-units."""

    offered: MicroArray  # [M, C] what each service offered to each client; -1 where it offered nothing
    served: BoolArray  # [M, C] who served whom
    price: MicroArray  # [M, C] what it was paid for that; 0 for the others

    def service_gains(self, values: MicroArray) -> MicroArray:
        """Return what each service has of the round [M], given what clients are worth to it [M, C]."""
        gains: MicroArray = ((values - self.price) * self.served).sum(axis=1)
        return gains

    def client_gains(self, costs: MicroArray) -> MicroArray:
        """Return what each client has of the round [C], given what the work costs it [M, C]."""
        gains: MicroArray = ((self.price - costs) * self.served).sum(axis=0)
        return gains


class Bench:
    """Plays one sampled market under a mechanism, with any reports.

    Attributes:
        market: the market.
        posted: whether the mechanism asked for prices of its own in the last round that was played.
        plays: how many rounds were cleared so far. Each clearing was checked: prices are at least the bid, at most the
            offer, and within the budget.
    """

    def __init__(self, mechanism: Mechanism, market: SampledMarket) -> None:
        self.market, self.posted, self.plays = market, False, 0
        self._mechanism = mechanism
        services, clients = market.values.shape
        spec = PopulationSpec(clients, market.cores, (IMAGES,), (0.0,), 0.0, 0.0)
        population = Population(spec, [LABELS] * services, [PUBLISHED] * services, market.seed)
        self._platform = Platform(population, Timeline(0.0, 0.0), mechanism, market.seed)
        self._names = [f"service-{m + 1}" for m in range(services)]
        self._specs = tuple(
            ServiceSpec(name, "mnist", LABELS, PUBLISHED, budget, 1.0, 2.0, 1, "certify")
            for name, budget in zip(self._names, market.budgets.tolist(), strict=True)
        )
        budgets = dict(zip(self._names, market.budgets.tolist(), strict=True))
        self._conditions = Conditions(budgets, market.cores)
        self._sizes = np.full(market.values.shape, IMAGES, dtype=np.int64)
        self._env = simpy.Environment()
        self._order = np.arange(clients)

    def play(
        self,
        values: MicroArray | None = None,  # [M, C] what services report; the truth if not given
        bids: MicroArray | None = None,  # [M, C] what clients report; their costs if not given
    ) -> Played:
        """Play the round."""
        values = self.market.values if values is None else values
        bids = self.market.costs if bids is None else bids
        nothing = np.zeros(bids.shape)
        held = Held(self._sizes, nothing, self.market.costs)
        world = Qualities(self._sizes, nothing, nothing, bids, held, nothing)
        asks = self._platform.ask(world, 1)
        self.posted = asks.least is not bids
        ledger = Ledger(self._names, len(self._order))
        for name, budget in self._conditions.budgets.items():
            ledger.grant(name, budget)
        active = tuple(range(len(self._names)))
        current = Round(
            1, 0.0, self._specs, active, self._conditions, world, asks, Journal(self._env, 1), asked=active
        )  # fmt: skip
        bidding = Bidding(self._platform, ledger)
        while current.asked:
            left = bidding.left(current)
            bidding.take(current, {self._names[m]: self._offer(current, m, values[m], left[m]) for m in current.asked})
        return self._cleared(current)

    def _offer(self, current: Round, m: int, values: MicroArray, left: Micro) -> Offer:
        """Return what a service offers, by the straightforward rule, with the money that it has left."""
        unwilling = current.unwilling(m)
        available = np.ones(len(self._order), dtype=np.bool_) if unwilling is None else ~unwilling
        least = current.asks.least[m]
        return name_best(
            values / MICRO,
            least / MICRO,
            float("inf") if self._mechanism.keeps_budgets else left / MICRO,
            available=available,
            order=self._order,
            payments=least / MICRO if self.posted else None,
        )

    def _cleared(self, current: Round) -> Played:
        book = self._platform.book(current)
        clearing = clear(self._mechanism, book, 1)
        self.plays += 1
        shape = self.market.values.shape
        offered = np.full(shape, -1, dtype=np.int64)
        price, served = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
        offered[book.services, book.clients] = book.payments
        won = clearing.core != NO_CORE
        places = book.services[won], book.clients[won]
        served[places] = True
        price[places] = clearing.price[won]
        return Played(offered, served, price)
