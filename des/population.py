"""The clients as a population: what data they hold in each round, its quality, and what they bid.

What a client has for a service in a round is a function of (seed, round, service, client) alone: no policy can change
the world that the others meet, services that have left are drawn like the rest, and neither more clients nor services
added at the end change what there was. All of it is drawn at once, as arrays (``fl.draws``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from des.behaviour import Behaviour, Truthful
from des.money import MicroArray, to_micro
from fl.arrays import FloatArray, IntArray, UInt32Array
from fl.draws import draw_key, integers, uniforms
from fl.elementary import rounded
from fl.partition import realised_emd
from fl.quality import DQIParameters, dqi


@dataclass(frozen=True, slots=True)
class PopulationSpec:
    """The clients of a market.

    Attributes:
        count: C.
        cores: K, how many services a client can serve at once (eq. 2).
        data_sizes: the set from which D is drawn, images.
        emds: the set from which the wanted EMD is drawn.
        cost_per_sample, cost_per_emd: a data set costs its client ``cost_per_sample * D - cost_per_emd * EMD``.
        speeds: each client has one of these for the whole run; at speed 2 it takes half the timeline's time per sample.
        departure_rate: probability that a client leaves in the middle of a round in which it was awarded a job.
        behaviour: what clients bid, given their costs.
    """

    count: int
    cores: int
    data_sizes: tuple[int, ...]
    emds: tuple[float, ...]
    cost_per_sample: float
    cost_per_emd: float
    speeds: tuple[float, ...] = (1.0,)
    departure_rate: float = 0.0
    behaviour: Behaviour = field(default_factory=Truthful)


@dataclass(frozen=True, slots=True)
class Qualities:
    """One round's world, read-only: arrays [M, C] over services and clients.

    Attributes:
        data_size: D, images.
        emd: the realised EMD (eq. 1).
        dqi: Psi (eq. 6), 12 significant digits.
        bid: O, in micro-units.
    """

    data_size: IntArray
    emd: FloatArray
    dqi: FloatArray
    bid: MicroArray


BLOCK = 4096
"""Draws that are made ahead at once: as many rounds as that takes, because a call costs more than its numbers."""


def draw_pairs(key: UInt32Array, rounds: IntArray, services: int, clients: int, pairs: int) -> IntArray:
    """Return which (D, EMD) pair each client has for each service, [..., M, C]: an index, all equally likely.

    Args:
        key: [..., 2] a stream "quality" (``fl.draws``), or many: markets in lockstep are drawn together.
        rounds: [...] one for each key; the shapes broadcast.
        services: M.
        clients: C.
        pairs: how many pairs there are.
    """
    return integers(
        key[..., None, None, :], pairs, rounds[..., None, None], np.arange(services)[:, None], np.arange(clients)
    )


class Population:
    """Draws the world of each round."""

    def __init__(
        self, spec: PopulationSpec, labels: Sequence[int], parameters: Sequence[DQIParameters], seed: int
    ) -> None:
        """Tabulate the quality and the cost of every (D, EMD) pair for every service.

        Args:
            spec: the clients.
            labels: [M] L of each service's data set.
            parameters: [M] DQI parameters of each service's data set.
            seed: the run's seed.
        """
        self.spec = spec
        self._quality, self._departure = draw_key(seed, "quality"), draw_key(seed, "departure")
        self._ahead = max(1, BLOCK // (len(labels) * spec.count))
        self._drawn = lru_cache(maxsize=2)(self._draw_ahead)
        self._departing = lru_cache(maxsize=2)(self._draw_departures)
        sizes = np.repeat(np.array(spec.data_sizes, dtype=np.int64), len(spec.emds))
        wanted = np.tile(np.array(spec.emds, dtype=np.float64), len(spec.data_sizes))
        self._pairs = len(sizes)
        self._row = np.arange(len(labels))[:, None] * self._pairs  # where each service's pairs begin in the flat tables
        self._size = np.tile(sizes, (len(labels), 1))
        self._emd = np.array(
            [[realised_emd(int(d), float(v), count) for d, v in zip(sizes, wanted, strict=True)] for count in labels]
        )
        self._dqi = rounded(np.array([dqi(sizes, row, p) for row, p in zip(self._emd, parameters, strict=True)]))
        self._cost = to_micro(spec.cost_per_sample * self._size - spec.cost_per_emd * self._emd)
        if (self._cost < 0).any():
            raise ValueError("a cost is negative: cost_per_emd outweighs cost_per_sample for the smallest data set")
        draw = integers(draw_key(seed, "speed"), len(spec.speeds), 0, 0, np.arange(spec.count))
        self.speed: FloatArray = np.array(spec.speeds, dtype=np.float64)[draw]

    def draw(self, round_: int) -> Qualities:
        """Return the data, DQI and bids of all clients for all services in a round."""
        block, position = divmod(round_, self._ahead)
        at = self._drawn(block)[position]
        costs = self._cost.take(at)
        costs.setflags(write=False)
        bids = self.spec.behaviour.bids(round_, costs)
        world = Qualities(self._size.take(at), self._emd.take(at), self._dqi.take(at), bids)
        for array in (world.data_size, world.emd, world.dqi, world.bid):
            array.setflags(write=False)
        return world

    def _draw_ahead(self, block: int) -> IntArray:
        """Return where each client's pair is in the flat tables, [rounds of the block, M, C]."""
        rounds = np.arange(block * self._ahead, (block + 1) * self._ahead)
        return draw_pairs(self._quality, rounds, len(self._row), self.spec.count, self._pairs) + self._row

    def _draw_departures(self, round_: int) -> FloatArray:
        """Return [2, C]: a client leaves if its first number is below the rate; the second says when."""
        return uniforms(self._departure, round_, 0, np.arange(self.spec.count))

    @property
    def dqi_range(self) -> tuple[FloatArray, FloatArray]:
        """The lowest [M] and the highest [M] DQI that a client's data can have for each service."""
        return self._dqi.min(axis=1), self._dqi.max(axis=1)

    @property
    def bid_range(self) -> tuple[MicroArray, MicroArray]:
        """The lowest [M] and the highest [M] bid that a client can make to each service, micro-units."""
        return self.spec.behaviour.bid_range(self._cost.min(axis=1), self._cost.max(axis=1))

    def departs(self, round_: int, client: int) -> float | None:
        """Return the part of its work after which a client leaves in this round, in [0, 1); None if it stays."""
        if not self.spec.departure_rate:
            return None
        leaves, part = self._departing(round_)[:, client].tolist()
        return part if leaves < self.spec.departure_rate else None
