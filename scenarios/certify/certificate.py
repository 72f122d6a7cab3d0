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
    """What to attack, and how hard.

    Attributes:
        mechanism: its name.
        options: the scenario's ``market.options``.
        shape: how large the sampled markets are.
        markets: how many are sampled.
        tries: misreports that are played for each party of a market, at most.
        seed: of all draws.
        seconds: after so long no further market is begun; None for no limit.
    """

    mechanism: str
    options: Mapping[str, Any] = field(default_factory=dict)
    shape: Shape = field(default_factory=Shape)
    markets: int = 50
    tries: int = 200
    seed: int = 0
    seconds: float | None = None


@dataclass(slots=True)
class Found:
    """What was found on one side of the market.

    Attributes:
        parties: how many were attacked.
        gaining: how many of them gain by a misreport, by more than rounding.
        market: the one with the largest gain.
        gain: the largest gain; None if there is none.
    """

    parties: int = 0
    gaining: int = 0
    market: SampledMarket | None = None
    gain: Gain | None = None

    def add(self, market: SampledMarket, gain: Gain) -> None:
        """Count what was found for one more party."""
        self.parties += 1
        if gain.found:
            self.gaining += 1
            if self.gain is None or gain.amount > self.gain.amount:
                self.market, self.gain = market, gain


@dataclass(frozen=True, slots=True)
class Certificate:
    """What came of a plan.

    Attributes:
        plan: the plan.
        markets: how many markets were attacked.
        clearings: how many rounds were cleared. In each, prices were at least the bid, at most the offer, and within
            the budget.
        found: what was found, by side.
    """

    plan: Plan
    markets: int
    clearings: int
    found: Mapping[Side, Found]


def certify(plan: Plan) -> Certificate:
    """Attack a mechanism.

    Raises:
        UnknownPluginError, PluginError, MechanismOptionsError: there is no such mechanism, or it takes other options.
        ClearingError: the mechanism broke a rule.
    """
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
