"""The clients' data and bids in many markets at once: arrays [B, M, C] over markets, services and clients.

Where each round is one fresh draw, as in the paper, all markets are drawn in one call. Where data lasts, or clients
learn, misreport or have secrets, each market's own ``Population`` draws it, which takes longer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from des.holdings import draw_pairs
from des.market import Market
from des.money import MicroArray
from des.population import Population, Qualities
from fl.arrays import FloatArray, IntArray
from fl.draws import draw_key

FLOATS = ("emd", "seen", "held_emd")


class Tables(NamedTuple):
    """What clients hold and say: the pairs of all services, one after another, or a round's whole world."""

    data_size: IntArray  # as in ``des.population.Qualities``, like the next three
    emd: FloatArray
    seen: FloatArray
    bid: MicroArray
    held_size: IntArray  # ``data_size`` and ``emd`` of ``des.population.Held``
    held_emd: FloatArray

    @classmethod
    def of(cls, world: Qualities) -> "Tables":
        """Return the arrays of a world, of whatever shape."""
        return cls(world.data_size, world.emd, world.seen, world.bid, world.held.data_size, world.held.emd)

    @classmethod
    def joined(cls, worlds: Sequence[Qualities]) -> "Tables":
        """Return all entries of some worlds, one after another."""
        columns = zip(*map(cls.of, worlds), strict=True)
        return cls._make(np.concatenate([part.ravel() for part in parts]) for parts in columns)


@dataclass(frozen=True)
class World:
    """One round of all markets."""

    tables: Tables  # flat
    # [B, M, C] where in the tables each client's data for each service stands. What a smaller market lacks stands at 0.
    at: IntArray

    @cached_property
    def seen(self) -> FloatArray:
        """What services see of Psi (eq. 6), [B, M, C]."""
        return self.tables.seen.take(self.at)

    @property
    def bid(self) -> MicroArray:
        """Bids [B, M, C], micro-units."""
        return self.tables.bid.take(self.at)


class Worlds:
    """Draws the rounds of all markets."""

    def __init__(
        self,
        templates: Sequence[Market],  # [B] a market like each one
        services: int,  # the most services that any of them has
        clients: int,  # the most clients that any of them has
    ) -> None:
        self._shape = len(templates), services, clients
        fresh = {id(market): market.population for market in templates if market.population.fresh}  # kind by kind
        self._tables = Tables.joined([population.pairs for population in fresh.values()]) if fresh else None
        starts, at = {}, 0
        for name, population in fresh.items():
            starts[name] = at
            at += population.pairs.bid.size
        self.own = np.array([not market.population.fresh for market in templates])
        self._populations: list[Population | None] = [None] * len(templates)
        self._pairs = np.ones((len(templates), 1, 1), dtype=np.int64)
        self._offset = np.zeros((len(templates), services, clients), dtype=np.int64)
        for b, market in enumerate(templates):
            if not self.own[b]:
                count, each = market.population.pairs.bid.shape
                self._pairs[b] = each
                self._offset[b, :count] = starts[id(market)] + each * np.arange(count)[:, None]
        self._keys = np.zeros((len(templates), 2), dtype=np.uint32)

    def reset(
        self,
        which: Sequence[int],
        seeds: Sequence[int],
        own: Mapping[int, Market],  # a market with its seed, of those that draw their own clients
    ) -> None:
        """Begin some markets anew."""
        self._keys[list(which)] = draw_key(seeds, "quality")
        for b in which:
            self._populations[b] = own[b].population if b in own else None

    def draw(self, rounds: IntArray) -> World:
        """Return the world of round ``rounds[b]`` in each market ``b``."""
        _, services, clients = self._shape
        if self._tables is None:
            return self._with_own(rounds, None)
        at = draw_pairs(self._keys, rounds, services, clients, self._pairs)
        at += self._offset
        world = World(self._tables, at)
        return self._with_own(rounds, world) if self.own.any() else world

    def _with_own(self, rounds: IntArray, world: World | None) -> World:
        """Return a world in which those markets that draw their own have done so."""
        shape = self._shape
        columns = (
            Tables._make(np.zeros(shape, np.float64 if name in FLOATS else np.int64) for name in Tables._fields)
            if world is None
            else Tables._make(part.take(world.at) for part in world.tables)
        )
        for b in self.own.nonzero()[0].tolist():
            population = self._populations[b]
            if population is None:
                continue
            drawn = Tables.of(population.draw(int(rounds[b])))
            count, clients = drawn.bid.shape
            for column, part in zip(columns, drawn, strict=True):
                column[b, :count, :clients] = part
        return World(Tables._make(column.ravel() for column in columns), np.arange(int(np.prod(shape))).reshape(shape))
