"""What the markets that are played in lockstep are, apart from their seeds: arrays, padded to the largest of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from des.market import Market
from des.money import MicroArray
from des.service import ServiceSpec
from fl.arrays import BoolArray, FloatArray, IntArray
from fl.surrogate import Curve, SurrogateFederation
from flmarket.core.errors import InputError

ENDLESS = 2**62  # in the place of a budget for the whole run, where there is none; micro-units


TRAINS = 'a market that trains models cannot be played in lockstep; use training.backend = "surrogate"'
"""What is said of one that does."""


class LockstepError(InputError):
    """A market cannot be played in lockstep, or a round is opened, closed or reset out of turn; says why."""


class Templates:
    """B markets of T kinds. Indices: b markets, m services, c clients.

    Attributes:
        of: [B] the kind of each market.
        markets: [T] one market of each kind, with seed 0, never played.
        only_k: what K is in all rounds of all markets; None if it differs.
    """

    def __init__(self, markets: Sequence[Market], of: Sequence[int]) -> None:
        self.curves = [curves_of(market) for market in markets]  # [T] the learning curves of its services, by name
        self.markets, self.of = tuple(markets), np.array(of, dtype=np.int64)
        self.each = tuple(self.markets[kind] for kind in of)  # [B] the one of each market's kind
        self.services = max(len(market.services) for market in markets)
        self.clients = max(market.population.spec.count for market in markets)
        self.rounds: IntArray = np.array([market.rounds for market in markets])[self.of]  # [B] N
        # [B, M] whether the market has the service
        self.exists: BoolArray = self._per_service(lambda spec: bool(spec.name), fill=False)
        counts = np.array([market.population.spec.count for market in markets])[self.of]
        self.there: BoolArray = np.arange(self.clients) < counts[:, None]  # [B, C] whether it has the client
        # [B, M] the target accuracy
        self.target: FloatArray = self._per_service(lambda spec: spec.target_accuracy, fill=1.0)
        # [B, M] Omega
        self.base: FloatArray = self._per_service(lambda spec: spec.reward_base, fill=1.0)
        self.epochs: IntArray = self._per_service(lambda spec: spec.local_epochs, fill=1)  # [B, M] local epochs
        # [B, M] the first round of each service
        self.arrival: IntArray = self._per_service(lambda spec: spec.arrival, fill=1)
        # [B, M] the budget for the whole run, micro-units
        self.total: MicroArray = self._per_service(
            lambda spec: ENDLESS if spec.total_budget is None else spec.total_budget, fill=ENDLESS
        )
        self._tabulate_conditions()

    def _per_service(self, value: Callable[[ServiceSpec], Any], fill: float) -> Any:
        """Return an array [B, M] with a value of each service; ``fill`` where a market has fewer."""
        rows = [
            [*(value(spec) for spec in market.services), *[fill] * (self.services - len(market.services))]
            for market in self.markets
        ]
        return np.array(rows)[self.of]

    def _tabulate_conditions(self) -> None:
        kinds, last = len(self.markets), int(max(market.rounds for market in self.markets))
        self._budgets = np.zeros((kinds, last + 2, self.services), dtype=np.int64)
        self._cores = np.ones((kinds, last + 2), dtype=np.int64)
        self._offline = np.zeros((kinds, last + 2, self.clients), dtype=np.bool_)
        for kind, market in enumerate(self.markets):
            names = [spec.name for spec in market.services]
            for number in range(1, market.rounds + 2):  # what follows the last round is observed, too
                now = market.schedule.at(number)
                self._budgets[kind, number, : len(names)] = [now.budgets[name] for name in names]
                self._cores[kind, number] = now.cores
                self._offline[kind, number, list(now.offline)] = True
        self._anyone_offline = bool(self._offline.any())
        values = {k for own, it in zip(self._cores, self.markets, strict=True) for k in own[1 : it.rounds + 2].tolist()}
        self.only_k: int | None = values.pop() if len(values) == 1 else None
        self._first = self.of * (last + 2)  # where each market's rounds begin in a table of all kinds

    def budgets(self, number: IntArray) -> MicroArray:
        """Return B_m [B, M] of round ``number[b]``, micro-units."""
        return self._budgets.reshape(-1, self.services).take(self._first + number, axis=0)

    def cores(self, number: IntArray) -> IntArray:
        """Return K [B]."""
        return self._cores.take(self._first + number)

    def online(self, number: IntArray) -> BoolArray:
        """Return who can be selected, [B, C]."""
        return self.there & ~self._offline[self.of, number] if self._anyone_offline else self.there


def curves_of(market: Market) -> Mapping[str, Curve]:
    """Return the learning curves of a market's services."""
    federation = market.federation
    if not isinstance(federation, SurrogateFederation):
        raise LockstepError(TRAINS)
    if market.mechanism.steps > 1:
        mechanism = type(market.mechanism).__name__
        raise _refusal(f"takes offers in {market.mechanism.steps} steps a round (mechanism {mechanism})")
    if any(change.rules is not None for change in market.schedule.interventions):
        raise _refusal("changes its mechanism in the middle of the run")
    return federation.curves


def _refusal(why: str) -> LockstepError:
    return LockstepError(f"a market that {why} cannot be played in lockstep")
