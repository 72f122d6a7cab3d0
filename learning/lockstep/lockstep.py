"""Markets in lockstep: B markets play their rounds together, as arrays, without SimPy.

    markets = Lockstep([factory] * 256, seeds=range(256))
    while not markets.finished.all():
        markets.close(some_offers(markets.open()))

A factory makes a des.Market from a seed, on the surrogate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from des.money import MicroArray
from des.observation import Status
from des.service import earned, reached
from fl.arrays import BoolArray, FloatArray, IntArray
from learning.lockstep.clearing import Clearings, Fate
from learning.lockstep.learning_curves import Curves
from learning.lockstep.market_kinds import LockstepError, MarketKinds
from learning.lockstep.offers import Offers, check
from learning.lockstep.worlds import LockstepWorld, Worlds
from learning.seats import MarketFactory

WAITING, TRAINING, REACHED, LEFT = range(4)
STATUS = (Status.WAITING, Status.TRAINING, Status.REACHED, Status.LEFT)  # what the codes of ``Lockstep.status`` mean


@dataclass(frozen=True, slots=True)
class View:
    """An open round of all markets. Arrays [B, M, C]; those of markets that are finished are without meaning."""

    playing: BoolArray  # [B] which markets are not finished
    round: IntArray  # [B] n
    asked: BoolArray  # [B, M] which services take part
    available: BoolArray  # [B, M, C] whom each can select
    bids: MicroArray  # [B, M, C] micro-units
    budget: MicroArray  # [B, M] what each service may offer, micro-units
    cores: IntArray  # [B] K
    world: LockstepWorld  # what the clients hold

    @property
    def dqi(self) -> FloatArray:
        """Psi (eq. 6) of each client's data for each service, [B, M, C]."""
        return self.world.dqi


@dataclass(frozen=True, slots=True)
class Closed:
    round: IntArray  # [B] n
    fate: Fate  # what became of each offer
    reward: FloatArray  # [B, M] r = Omega^accuracy, at most Omega^target; 0 before a service arrives
    status: IntArray  # [B, M] codes of ``STATUS``
    served: IntArray  # [B, M] how many clients served each service
    spent: MicroArray  # [B, M] what it paid, micro-units


class Lockstep:
    """B markets, each at its own round.

    For the same seed and the same offers each market is what ``des.Market`` is: who is served, at what price,
    accuracies, rewards and exits are equal to the last bit.
    """

    def __init__(
        self,
        factories: Sequence[MarketFactory],  # [B] equal ones make markets of one kind
        seeds: Sequence[int],  # [B]
    ) -> None:
        if len(factories) != len(seeds) or not factories:
            raise ValueError(f"one seed for each market: {len(factories)} markets, {len(seeds)} seeds")
        kinds = list({id(factory): factory for factory in factories}.values())
        self.kinds = MarketKinds(kinds, [kinds.index(factory) for factory in factories])
        b, m = len(factories), self.kinds.services
        self._worlds = Worlds(self.kinds)
        self._clearings = Clearings(self.kinds)
        self.curves = Curves(self.kinds)
        self.round = np.zeros(b, dtype=np.int64)  # [B] the last round that was closed, 0 before the first
        self.status = np.full((b, m), LEFT)  # [B, M] codes of ``STATUS``
        self.paid = np.zeros((b, m), dtype=np.int64)  # [B, M] what each service has paid, micro-units
        self._view: View | None = None
        self.reset(range(b), seeds)

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin some markets again, with other seeds; the others stay between rounds. An open round is not played."""
        rows = list(which)
        if len(rows) != len(seeds):
            raise ValueError(f"one seed for each market: {len(rows)} markets, {len(seeds)} seeds")
        self._view = None
        if not rows:
            return
        self._worlds.reset(rows, seeds)
        self._clearings.reset(rows, seeds)
        self.curves.reset(rows, seeds)
        self.round[rows], self.paid[rows] = 0, 0
        begins = np.where(self.kinds.arrival[rows] > 1, WAITING, TRAINING)
        self.status[rows] = np.where(self.kinds.exists[rows], begins, LEFT)

    @property
    def finished(self) -> BoolArray:
        """Whether no further round follows in each market: the last one is over, or every service has left."""
        over: BoolArray = (self.round >= self.kinds.rounds) | (self.status > TRAINING).all(axis=1)
        return over

    @property
    def total_left(self) -> MicroArray:
        """The unspent part of each service's budget for the whole run [B, M]; about ``ENDLESS`` without one."""
        return self.kinds.total - self.paid

    def open(self) -> View:
        """Open the next round of all markets that are not finished."""
        kinds, playing, number = self.kinds, ~self.finished, self.round + 1
        budget = np.minimum(kinds.budgets(number), self.total_left)
        if (waiting := self.status == WAITING).any():
            self.status[waiting & playing[:, None] & (kinds.arrival <= number[:, None])] = TRAINING
            budget[self.status == WAITING] = 0
        asked = playing[:, None] & (self.status == TRAINING)
        available = asked[:, :, None] & kinds.online(number)[:, None, :]
        world = self._worlds.draw(number)
        self._view = View(playing, number, asked, available, world.bid, budget, kinds.cores(number), world)
        return self._view

    def close(
        self,
        offers: Offers,  # of all services that take part; a service without any selects no client
    ) -> Closed:
        """Check offers, and play the open round to its end."""
        view = self._opened()
        check(offers, view.bids, view.available, view.budget, view.asked)
        return self.play(offers)

    def play(
        self,
        offers: Offers,  # that keep the constraints, such as those of ``by_payment``
    ) -> Closed:
        """Play the open round to its end."""
        view, kinds = self._opened(), self.kinds
        fate = self._clearings.fate(offers, view.world, view.bids, view.cores, view.round)
        served, spent, trained = fate.sums(self.paid.shape)
        self.curves.train(view.round, trained)
        self.round = np.where(view.playing, view.round, self.round)
        self.paid += spent
        self.status[view.asked & reached(self.curves.accuracy, kinds.target)] = REACHED
        reward = earned(kinds.base, np.minimum(self.curves.accuracy, kinds.target))
        reward[self.status == WAITING] = 0.0
        closed = Closed(view.round, fate, reward, self.status.copy(), served, spent)
        self.status[self.status == REACHED] = LEFT
        self._view = None
        return closed

    def _opened(self) -> View:
        if self._view is None:
            raise LockstepError("no round is open")
        return self._view
