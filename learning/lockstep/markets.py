"""Markets in lockstep: B markets play their rounds together, as arrays, without SimPy.

    markets = Lockstep([factory] * 256, seeds=range(256))     # factory: seed -> des.Market, on the surrogate
    while not markets.finished.all():
        view = markets.open()
        markets.close(some_offers(view))

For the same seed and the same offers each market is what ``des.Market`` is: who is served, at what price, accuracies,
rewards and exits are equal to the last bit. What SimPy adds, simulated time and events, is left out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from des.money import MICRO, MicroArray
from des.records import Observation, Privileged
from des.service import earned
from des.views import only
from fl.arrays import BoolArray, FloatArray, IntArray
from fl.streams import stream_key
from learning.lockstep.clearing import Clearings
from learning.lockstep.curves import Curves
from learning.lockstep.offers import Offers, check
from learning.lockstep.rounds import LEFT, REACHED, TRAINING, WAITING, Closed, View, begin, settle
from learning.lockstep.templates import ENDLESS, LockstepError, Templates
from learning.lockstep.worlds import Worlds
from learning.seats import MarketFactory


class Lockstep:
    """B markets, each at its own round.

    Attributes:
        round: [B] the last round that was closed, 0 before the first.
        paid: [B, M] what each service has paid, micro-units.
        income: [B, C] what each client has received, micro-units.
        seeds: [B] the seed of each market.
    """

    def __init__(
        self,
        # [B] each makes a market from its seed; equal ones make markets of one kind
        factories: Sequence[MarketFactory],
        seeds: Sequence[int],  # [B]
    ) -> None:
        if len(factories) != len(seeds) or not factories:
            raise ValueError(f"one seed for each market: {len(factories)} markets, {len(seeds)} seeds")
        kinds = {id(factory): factory for factory in factories}
        place = {name: kind for kind, name in enumerate(kinds)}
        self._factories = tuple(factories)
        self.kinds = Templates([make(0) for make in kinds.values()], [place[id(factory)] for factory in factories])
        b, m, c = len(factories), self.kinds.services, self.kinds.clients
        self._worlds = Worlds(self.kinds.each, m, c)
        self._clearings = Clearings(self.kinds)
        # Those whose clients or mechanism are their own.
        self._alone = self._worlds.own | [not market.mechanism.by_client for market in self.kinds.each]
        # the services' learning curves
        self.curves = Curves([self.kinds.curves[kind] for kind in self.kinds.of], m, int(self.kinds.rounds.max()))
        self.round, self.seeds = np.zeros(b, dtype=np.int64), [0] * b
        self.status = np.full((b, m), LEFT)  # [B, M] codes of ``rounds.STATUS``
        self.paid, self.income = np.zeros((b, m), dtype=np.int64), np.zeros((b, c), dtype=np.int64)
        self._view: View | None = None
        self._shown: dict[int, tuple[tuple[str, ...], FloatArray, frozenset[int]]] = {}
        self._playing = np.zeros(b, dtype=np.bool_)
        self._finished: BoolArray | None = None  # until it is asked for
        self.reset(range(b), seeds)

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin some markets anew, with other seeds; the others stay where they are, between rounds."""
        if self._view is not None:
            raise LockstepError("a round is open; close it first")
        rows = list(which)
        if len(rows) != len(seeds):
            raise ValueError(f"one seed for each market: {len(rows)} markets, {len(seeds)} seeds")
        if not rows:
            return
        own = {}
        for b, seed in zip(rows, seeds, strict=True):
            self.seeds[b] = seed
            if self._alone[b]:
                own[b] = self._factories[b](seed)
        self._worlds.reset(rows, seeds, own)
        self._clearings.reset(rows, seeds, own)
        self.curves.reset(rows, seeds)
        self.round[rows], self.paid[rows], self.income[rows] = 0, 0, 0
        begins = np.where(self.kinds.arrival[rows] > 1, WAITING, TRAINING)
        self.status[rows] = np.where(self.kinds.exists[rows], begins, LEFT)
        self._finished = None

    @property
    def finished(self) -> BoolArray:
        """Whether no further round follows in each market: the last one is over, or every service has left."""
        if self._finished is None:
            self._finished = (self.round >= self.kinds.rounds) | ~(self.status <= TRAINING).any(axis=1)
            self._finished.setflags(write=False)
        return self._finished

    @property
    def drawn_together(self) -> bool:
        """Whether all worlds are looked up in the kinds' tables of pairs, and all asks are bids."""
        return not self._alone.any()

    @property
    def total_left(self) -> MicroArray:
        """What each service has not paid of its budget for the whole run [B, M]; about ``ENDLESS`` without one."""
        return self.kinds.total - self.paid

    def open(self) -> View:
        """Open the next round of all markets that are not finished."""
        if self._view is not None:
            raise LockstepError("a round is open; close it first")
        kinds, playing = self.kinds, ~self.finished
        self._playing = playing
        number = self.round + 1
        budget = np.minimum(kinds.budgets(number), self.total_left)
        asked, available = begin(playing, number, kinds.arrival, kinds.online(number), self.status, budget)
        world = self._worlds.draw(number)
        asks, willing = self._clearings.ask(world, number, playing)
        if willing is not None:
            available &= willing
        self._shown.clear()
        self._view = View(number, asked, available, asks, budget, kinds.cores(number), world)
        return self._view

    def abandon(self) -> None:
        """Leave the open round, if there is one, as if it had not been opened."""
        self._view = None

    def close(
        self,
        offers: Offers,  # of all services that take part; those of whom there are none want nobody
    ) -> Closed:
        """Play the open round to its end."""
        view, kinds = self._view, self.kinds
        if view is None:
            raise LockstepError("no round is open")
        check(offers, view.asks, view.available, view.budget, view.asked, self._clearings.keeps_budgets)
        fate = self._clearings.clear(offers, view.world, view.asks, view.budget, view.cores, view.round, view.asked)
        before = self.curves.accuracy
        sums = fate.sums(self.paid.shape, self.income.shape)
        settle(sums, view.budget, kinds.total, self.paid, self.income)
        self.curves.train(view.round, sums.trained)
        reached = view.asked & (self.curves.accuracy >= kinds.target)
        self.status[reached] = REACHED
        self.round = np.where(self._playing, view.round, self.round)
        reward = earned(kinds.base, np.minimum(self.curves.accuracy, kinds.target))
        reward[self.status == WAITING] = 0.0
        closed = Closed(view.round, view.asked, fate, reward, self.status.copy(), sums.served, sums.spent, before)
        self._clearings.learn(fate, view.round, self._playing)
        self.status[self.status == REACHED] = LEFT
        self._view = self._finished = None
        return closed

    def losses(
        self,
        closed: Closed,  # the round, which was the last one
        b: int,  # the market
        which: IntArray,  # [n] places of its offers
    ) -> FloatArray:
        """Return the mean local loss of each client of some offers of market ``b``; NaN for those not served."""
        found = np.full(len(which), np.nan)
        at = which[closed.fate.served[which]]
        found[closed.fate.served[which]] = self.curves.losses(
            np.full(len(at), b),
            closed.fate.offers.service[at],
            closed.before,
            closed.fate.tables.held_emd[closed.fate.at[at]],
        )
        return found

    def observation(
        self,
        b: int,  # the market
        m: int,  # the service
        *,
        # whether it sees what is private; if not given, it does where its market was made so
        privileged: bool | None = None,
    ) -> Observation:
        """Return what service ``m`` of market ``b`` observes in the open round, as policies take it."""
        view = self._view
        if view is None:
            raise LockstepError("no round is open")
        market = self.kinds.each[b]
        if b not in self._shown:
            self._shown[b] = self._show(view, b)
        names, bids, offline = self._shown[b]
        clients, spec = market.population.spec.count, market.services[m]
        public = market.population.spec.disclosure.public_bids
        number, total = int(view.round[b]), int(self.kinds.total[b, m])
        unwilling = self._clearings.unwilling(b, m)
        hidden = None
        if spec.privileged if privileged is None else privileged:
            at, tables = view.world.at[b, m, :clients], view.world.tables
            hidden = Privileged(_read_only(tables.data_size[at]), _read_only(tables.emd[at]))
        return Observation(
            round=number,
            rounds=market.rounds,
            service=spec.name,
            services=names,
            dqi=_read_only(view.dqi[b, m, :clients]),
            bids=bids if public else only(bids, m),
            budget=int(view.budget[b, m]) / MICRO,
            cores=int(view.cores[b]),
            accuracy=float(self.curves.accuracy[b, m]),
            target_accuracy=spec.target_accuracy,
            key=stream_key(self.seeds[b], "policy", spec.name, number),
            offline=offline,
            privileged=hidden,
            unwilling=None if unwilling is None else _read_only(unwilling),
            over_budget=bool(self._clearings.keeps_budgets[b]),
            bids_public=public,
            total_left=None if total == ENDLESS else (total - int(self.paid[b, m])) / MICRO,
        )

    def _show(self, view: View, b: int) -> tuple[tuple[str, ...], FloatArray, frozenset[int]]:
        """Return what all services of a market see of a round: their names, the bids [M, C] and who is offline."""
        market = self.kinds.each[b]
        names, clients = tuple(spec.name for spec in market.services), market.population.spec.count
        bids = np.where(view.asked[b, :, None], view.asks[b] / MICRO, 0.0)[: len(names), :clients]
        offline = np.flatnonzero(~self.kinds.online(view.round)[b, :clients])
        return names, _read_only(bids), frozenset(offline.tolist())


def _read_only(array: Any) -> Any:
    """Return an array that policies cannot write to, as in a market."""
    array.setflags(write=False)
    return array
