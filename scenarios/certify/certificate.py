"""A certificate: what an attack on a mechanism found, over many sampled markets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from des.mechanisms import create
from fl.tracking import tracked
from scenarios.certify.players import Bench
from scenarios.certify.sampling import Dice, SampledMarket, Shape, sample
from scenarios.certify.search import SIDES, Gain, Side, attack


@dataclass(frozen=True, slots=True)
class Plan:
    """What to attack, and how hard."""

    mechanism: str  # its name
    options: Mapping[str, Any] = field(default_factory=dict)  # the scenario's ``market.options``
    shape: Shape = field(default_factory=Shape)  # how large the sampled markets are
    markets: int = 50  # how many are sampled
    tries: int = 200  # misreports that are played for each party of a market, at most
    seed: int = 0  # of all draws
    seconds: float | None = None  # after so long no further market is begun; None for no limit


@dataclass(slots=True)
class Found:
    """What was found on one side of the market."""

    parties: int = 0  # how many were attacked
    gaining: int = 0  # how many of them gain by a misreport, by more than rounding
    market: SampledMarket | None = None  # the one with the largest gain
    gain: Gain | None = None  # the largest gain; None if there is none

    def add(self, market: SampledMarket, gain: Gain) -> None:
        """Count what was found for one more party."""
        self.parties += 1
        if gain.found:
            self.gaining += 1
            if self.gain is None or gain.amount > self.gain.amount:
                self.market, self.gain = market, gain


@dataclass(frozen=True, slots=True)
class Certificate:
    """What came of a plan."""

    plan: Plan
    markets: int  # how many markets were attacked
    # how many rounds were cleared. In each, prices were at least the bid, at most the offer, and within the budget.
    clearings: int
    found: Mapping[Side, Found]  # what was found, by side


def certify(plan: Plan) -> Certificate:
    """Attack a mechanism."""
    found: dict[Side, Found] = {side: Found() for side in SIDES}
    clearings, attacked, end = 0, 0, monotonic() + (float("inf") if plan.seconds is None else plan.seconds)
    create(plan.mechanism, plan.options)
    for number in tracked(range(plan.markets), "markets attacked"):
        if attacked and monotonic() >= end:
            break
        market = sample(plan.shape, plan.seed, number)
        bench = Bench(create(plan.mechanism, plan.options), market)
        services, clients = market.values.shape
        for side, count in zip(SIDES, (services, clients), strict=True):
            for party in range(count):
                dice = Dice(plan.seed, side, number, party)
                found[side].add(market, attack(bench, side, party, plan.tries, dice))
        clearings += bench.plays
        attacked += 1
    return Certificate(plan, attacked, clearings, found)
