"""The players of a sampled market: they report what they like, and offers follow from the reports by one rule.

A client reports its bids; a service reports what clients are worth to it. It names those whose reported value is at
least what they ask, the best value per ask first, and offers the value, or the price that the mechanism asks, as far as
its budget goes. Offers are taken, steps made and rounds cleared by the market's own code.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from des.allocation import NO_CORE
from des.clearing import Platform
from des.clients.data_tables import Group, PopulationSpec
from des.clients.population import Population
from des.costs.linear import Linear
from des.ledger import Ledger
from des.mechanism import Fates, Mechanism, Menu, asks_of, clearing_of, learn, menu_of, settlements_of
from des.money import MICRO, Micro, MicroArray
from des.observation import Offer
from des.round_state import Round
from des.schedule import Conditions
from des.service import ServiceSpec
from des.timeline import Clock, Durations, Journal
from fl.arrays import BoolArray, read_only
from fl.data.dqi import PUBLISHED
from flmarket.benchmark.certify.sampling import IMAGES, SampledMarket
from learning.policies.worth import name_best

Side = Literal["services", "clients", "sybils"]  # sybils are clients that come as two (``sampling.doubled``)
SIDES: tuple[Side, ...] = ("services", "clients")

# [C] the values that a service reports, or [M] the bids of a client; over several rounds those of odd ones, then those
# of even ones
Report = tuple[Micro, ...]

LABELS = 10


def of(party: int, side: Side, amounts: MicroArray) -> MicroArray:
    """Return the view of a party's amounts in [M, C] amounts."""
    if side == "sybils":
        return amounts[:, party : party + 2]
    return amounts[party] if side == "services" else amounts[:, party]


@dataclass(frozen=True, slots=True, eq=False)
class PlayedRound:
    """The outcome of a round. Arrays are over services and clients; money is in micro-units."""

    offered: MicroArray  # [M, C] what each service offered to each client; -1 where it offered nothing
    served: BoolArray  # [M, C] who served whom
    price: MicroArray  # [M, C] what it was paid for that; 0 for the others
    menu: Menu | None = None  # the menu that the mechanism posted, if any

    def gain(self, side: Side, party: int, market: SampledMarket) -> Micro:
        """Return what a party has of the round, given the true values and costs."""
        each = market.values - self.price if side == "services" else self.price - market.costs
        return int(of(party, side, each * self.served).sum())


class Bench:
    """Plays one sampled market under a mechanism, with any reports.

    Over several rounds, the market is the same in each, and the mechanism remembers.
    """

    def __init__(self, mechanism: Mechanism, market: SampledMarket, rounds: int = 1) -> None:
        self.market = market
        self.parts = min(rounds, 2)  # how many reports a party makes: one for odd rounds, one for even ones
        self._rounds = rounds
        self.posted = False  # whether the mechanism asked for prices of its own in the last round that was played
        self.plays = 0  # rounds that were cleared so far, each within bids, offers and budgets (``clearing_of``)
        self._mechanism = mechanism
        services, clients = market.values.shape
        spec = PopulationSpec(market.cores, (Group(clients, (IMAGES,), (0.0,), Linear(per_sample=0.0)),))
        population = Population(spec, [LABELS] * services, [PUBLISHED] * services, market.seed)
        self._world = population.draw(1)
        # A copy plays: the mechanism that is given stays as it was, for ``truly`` to begin with.
        self._platform = Platform(population, Durations(0.0, 0.0), deepcopy(mechanism), market.seed)
        budgets = {f"service-{m + 1}": budget for m, budget in enumerate(market.budgets.tolist())}
        self._specs = tuple(
            ServiceSpec(name, "mnist", LABELS, PUBLISHED, budget, 1.0, 2.0, 1, "certify")
            for name, budget in budgets.items()
        )
        self._conditions = Conditions(budgets, market.cores)

    def truly(self, side: Side, party: int, report: Report) -> tuple[PlayedRound, Micro]:
        """Play a party's report against the truth of all others; return the last round, and what the party has of all.

        The mechanism begins fresh, and remembers from round to round.
        """
        self._platform.mechanism, has, length = deepcopy(self._mechanism), 0, len(report) // self.parts
        for at in range(self._rounds):
            start = at % self.parts * length
            played = self.play(*self.reports(side, party, report[start : start + length]), at + 1)
            has += played.gain(side, party, self.market)
        return played, has

    def reports(self, side: Side, party: int, report: Report) -> tuple[MicroArray, MicroArray]:
        """Return the values and the bids that are reported if all parties but one tell the truth."""
        values, bids = self.market.values.copy(), self.market.costs.copy()
        own = of(party, side, values if side == "services" else bids)
        own[:] = np.reshape(report, own.shape)
        return values, bids

    def play(
        self,
        values: MicroArray | None = None,  # [M, C] what services report; the truth if not given
        bids: MicroArray | None = None,  # [M, C] what clients report; their costs if not given
        round_: int = 1,
    ) -> PlayedRound:
        values = self.market.values if values is None else values
        bids = self.market.costs if bids is None else bids
        world = replace(self._world, bid=read_only(bids))
        asks = asks_of(self._platform.mechanism, world.bid, world.data_size, round_, world.serves)
        self.posted = asks.least is not world.bid
        names = [spec.name for spec in self._specs]
        ledger = Ledger(names, bids.shape[1])
        for name, budget in self._conditions.budgets.items():
            ledger.grant(name, budget)
        active, journal = tuple(range(len(names))), Journal(Clock(), round_)
        before, nobody = (0.0,) * len(self._specs), (None,) * len(self._specs)
        market = (self._rounds, round_, 0, self._specs, active, self._conditions, world, asks, before, nobody, journal)
        current = Round(round_, *market, offering=active)
        while current.offering:
            left = {m: ledger.accounts[names[m]].free for m in current.offering}
            offers = {names[m]: self._offer(current, m, values[m], left[m]) for m in current.offering}
            self._platform.take(current, offers, ledger)
        return self._outcome(current)

    def _offer(self, current: Round, m: int, values: MicroArray, left: Micro) -> Offer:
        unwilling = current.unwilling(m)
        least = current.asks.least[m]
        return name_best(
            values / MICRO,
            least / MICRO,
            float("inf") if self._mechanism.keeps_budgets else left / MICRO,
            available=np.ones(len(values), dtype=np.bool_) if unwilling is None else ~unwilling,
            order=np.arange(len(values)),
            payments=least / MICRO if self.posted else None,
        )

    def _outcome(self, current: Round) -> PlayedRound:
        book = self._platform.book(current)
        mechanism = self._platform.mechanism
        clearing = clearing_of(mechanism, book, current.number)
        won = clearing.core != NO_CORE
        # Every update arrives; in half of the markets models become better by them.
        before = np.zeros(len(self._specs))
        after = before + self.market.seed % 2
        prices, deliveries = settlements_of(
            mechanism, book, clearing, clearing.price, Fates(won), before, after, current.number
        )
        if self._rounds > 1:
            learn(mechanism, book, clearing, deliveries)
        self.plays += 1
        shape = self.market.values.shape
        offered = np.full(shape, -1)
        price, served = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
        offered[book.services, book.clients] = book.payments
        places = book.services[won], book.clients[won]
        served[places] = True
        price[places] = prices[won]
        return PlayedRound(offered, served, price, menu_of(mechanism, book, clearing, current.number))
