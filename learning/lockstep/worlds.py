"""The clients' data and bids in many markets at once: arrays [B, M, C] over markets, services and clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from des.clients.data_sources import draw_pairs
from des.money import MicroArray
from fl.arithmetic.draws import draw_key
from fl.arrays import FloatArray, IntArray
from learning.lockstep.market_kinds import MarketKinds


class Pairs(NamedTuple):
    """All (D, EMD) pairs that a client can hold, for all services of all kinds of markets, one after another."""

    size: IntArray  # D, images
    emd: FloatArray  # eq. 1
    dqi: FloatArray  # Psi, eq. 6
    bid: MicroArray  # micro-units


@dataclass(frozen=True, slots=True)
class LockstepWorld:
    pairs: Pairs
    at: IntArray  # [B, M, C] which pair each client holds; where a smaller market has no such client, any

    @property
    def dqi(self) -> FloatArray:
        """Psi (eq. 6) of each client's data for each service, [B, M, C]."""
        return self.pairs.dqi.take(self.at)

    @property
    def bid(self) -> MicroArray:
        """Bids [B, M, C], micro-units."""
        return self.pairs.bid.take(self.at)


class Worlds:
    """Draws the rounds of all markets."""

    def __init__(self, kinds: MarketKinds) -> None:
        pairs = [market.population.pairs for market in kinds.markets]
        columns = ([getattr(part, name).ravel() for part in pairs] for name in ("size", "emd", "dqi", "cost"))
        self.pairs = Pairs(*map(np.concatenate, columns))
        self._services, self._clients = np.arange(kinds.services), kinds.clients
        count, each = np.array([part.cost[0].shape for part in pairs])[kinds.of].T  # [B] services, and pairs of each
        first = np.cumsum([0, *(part.cost.size for part in pairs[:-1])])[kinds.of]  # [B] where a kind's pairs begin
        row = np.minimum(self._services, count[:, None] - 1)  # of a service that is not there, those of the last one
        choices = [market.population.pair_choices for market in kinds.markets]
        begin = kinds.per_client([it.first for it in choices], absent=0)[:, None]  # [B, 1, C] in a service's row
        self._first = (first[:, None] + each[:, None] * row)[..., None] + begin  # [B, M, C]
        self._each = kinds.per_client([it.count for it in choices], absent=1)[:, None]  # [B, 1, C]
        self._keys = np.zeros((len(kinds.of), 2), dtype=np.uint32)

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin some markets again, with other seeds."""
        self._keys[list(which)] = draw_key(seeds, "quality")

    def draw(self, rounds: IntArray) -> LockstepWorld:
        """Return the world of round ``rounds[b]`` in each market ``b``."""
        at = draw_pairs(self._keys, rounds, len(self._services), self._clients, self._each)
        at += self._first
        return LockstepWorld(self.pairs, at)
