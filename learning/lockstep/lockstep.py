"""Markets in lockstep: B markets play their rounds together, as arrays, without SimPy.

    markets = Lockstep([factory] * 256, seeds=range(256))
    while not markets.finished.all():
        markets.close(some_offers(markets.open()))

A factory makes a des.Market from a seed, on the surrogate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from types import SimpleNamespace

import numpy as np

from des.money import MicroArray
from des.observation import Status
from des.reward import earned
from des.service import reached
from fl.arithmetic.native import extension
from fl.arrays import BoolArray, FloatArray, IntArray
from fl.surrogate.learning_curves import Curve, Trained, follow, noise, noise_keys
from learning.lockstep.market_kinds import LockstepError, LockstepWorld, MarketKinds, Worlds
from learning.lockstep.offers import Clearings, Fate, Offers, check
from learning.seats import MarketFactory

_native = extension("follow")

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


class Curves:
    """The services of all markets on the surrogate's learning curves."""

    def __init__(self, kinds: MarketKinds) -> None:
        self._kinds = kinds
        columns: dict[str, FloatArray] = {
            field.name: kinds.per_service(
                [[getattr(curve, field.name) for curve in curves.values()] for curves in kinds.curves], absent=0.5
            )
            for field in fields(Curve)
        }
        self._curves, self._columns = SimpleNamespace(**columns), np.stack(list(columns.values()))
        self._start: FloatArray = 1.0 - columns["start"]  # [B, M] the accuracy of the initial models
        self.accuracy = self._start.copy()  # [B, M] that of the present ones
        self.u = np.zeros(self.accuracy.shape)  # [B, M] the latent progress
        self._luck = np.zeros(self.accuracy.shape)
        markets, services = self.accuracy.shape
        rounds = int(kinds.rounds.max()) + 2  # round 0 stands for luck; the last is observed, never played
        self._noise = np.zeros((markets, rounds, services))

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin some markets again, with other seeds: draw their noise of all rounds."""
        rows = np.array(which)
        keys = np.zeros((len(rows), self.accuracy.shape[1], 1, 2), dtype=np.uint32)
        for kind in np.unique(self._kinds.of[rows]).tolist():
            places = np.flatnonzero(self._kinds.of[rows] == kind).tolist()
            names = list(self._kinds.curves[kind])
            keys[places, : len(names)] = noise_keys([seeds[place] for place in places], names)
        self._noise[rows] = np.moveaxis(noise(keys, np.arange(self._noise.shape[1])), 1, 2)
        self._luck[rows] = self._noise[rows, 0]
        self.accuracy[rows], self.u[rows] = self._start[rows], 0.0

    def train(
        self,
        rounds: IntArray,  # [B] which round each market plays
        sums: Trained,  # what each service trains on, [B, M]; 0 for those that do not
    ) -> None:
        """Let all services train that have images."""
        z = self._noise[np.arange(len(rounds)), rounds]
        if _native is not None:
            before, self.u, self.accuracy = self.u, self.u.copy(), self.accuracy.copy()
            _native.follow(self._columns, before, self._luck, z, *sums, self.u, self.accuracy)
            return
        trains = sums.samples > 0
        of = Trained(*(np.where(trains, part, 1) for part in sums))
        u, accuracy = follow(self._curves, self.u, self._luck, z, of, np.sqrt)
        self.u, self.accuracy = np.where(trains, u, self.u), np.where(trains, accuracy, self.accuracy)


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
        offers: Offers,  # that keep the constraints, such as those of ``Offers.by_payment``
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
