"""The pairs of a size and an EMD that clients hold in each round: fresh, as in the paper, or lasting.

For each service it holds one of a few (D, EMD) pairs, or of a few sizes: a function of (seed, round, service, client)
alone, whatever rounds were asked for before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fl.arithmetic.draws import draw_key, integers, uniforms
from fl.arrays import BoolArray, IntArray, UInt32Array

BLOCK = 4096
"""Draws that are made ahead at once: as many rounds as that takes, because a call costs more than its numbers."""

FRESH = -1  # in place of a round, for a pair that was drawn for the present round alone

STRETCH = 64  # rounds that are searched at once for the last drift before a round that was not reached step by step


@dataclass(frozen=True, slots=True)
class Lasting:
    # the probability that a round keeps a client's lasting pair for a service, rather than draw another one for that
    # round alone; 0 as in the paper
    persistence: float = 0.0
    drift: float = 0.0  # in each round, the probability that a client's lasting pairs are drawn again, and stay


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of each client, of things that stand in a row, group of clients by group."""

    count: IntArray  # [C] how many there are
    first: IntArray  # [C] the place of the first one in the row
    total: int  # how many things the row has

    @classmethod
    def of(cls, clients: Sequence[int], things: Sequence[int]) -> "Choices":
        """Return them, given how many clients and how many things each group has."""
        first = np.cumsum([0, *things[:-1]])
        return cls(np.repeat(things, clients), np.repeat(first, clients), sum(things))


def draw_pairs(
    # [..., 2] a stream "quality" (``fl.arithmetic.draws``), or many: markets in lockstep are drawn together
    key: UInt32Array,
    rounds: IntArray,  # [...] one for each key; the shapes broadcast
    services: int,  # M
    clients: int,  # C
    pairs: int | IntArray,  # how many there are, of each market [..., 1, 1] or client [..., 1, C] if they differ
) -> IntArray:
    """Return which (D, EMD) pair each client has for each service, [..., M, C]: an index, all equally likely."""
    return integers(
        key[..., None, None, :], pairs, rounds[..., None, None], np.arange(services)[:, None], np.arange(clients)
    )


class Holdings:
    """Draws the pair that each client holds for each service in a round."""

    def __init__(
        self,
        services: int,
        pairs: Choices,  # of each client, in a service's row of a table
        lasting: Lasting,
        seed: int,
    ) -> None:
        self._clients, self._pairs, self._lasting = np.arange(len(pairs.count)), pairs.count, lasting
        self._services = np.arange(services)[:, None]
        self._row = self._services * pairs.total + pairs.first  # [M, C] where they begin in a flat table
        names = ("quality", "lasting", "persistence", "drift")
        self._fresh, self._types, self._keeping, self._drift = (draw_key(seed, name) for name in names)
        self._ahead = max(1, BLOCK // self._row.size)
        self._drawn = lru_cache(maxsize=2)(self._draw_ahead)
        self._reached: tuple[int, IntArray] | None = None  # the last block that was drawn, and its last row of drifts

    def at(self, round_: int) -> tuple[IntArray, IntArray | None]:
        block, position = divmod(round_, self._ahead)
        places, since = self._drawn(block)
        return places[position], None if since is None else since[position]

    def _draw_ahead(self, block: int) -> tuple[IntArray, IntArray | None]:
        """Return both arrays of ``at`` for the rounds of a block, [rounds, M, C]."""
        rounds = np.arange(block * self._ahead, (block + 1) * self._ahead)
        fresh = draw_pairs(self._fresh, rounds, len(self._row), len(self._clients), self._pairs)
        fresh += self._row
        if not self._lasting.persistence:
            return fresh, None
        since = self._since(block, rounds)[:, None, :]
        stays = integers(self._types, self._pairs, since, self._services, self._clients) + self._row
        drawn = uniforms(self._keeping, rounds[:, None, None], self._services, self._clients)[0]
        kept = drawn < self._lasting.persistence
        return np.where(kept, stays, fresh), np.where(kept, since, FRESH)

    def _since(self, block: int, rounds: IntArray) -> IntArray:
        """Return the round in which each client's lasting pairs were last drawn, [rounds, C]."""
        last = np.where(self._drifts(rounds, self._clients), rounds[:, None], 0)
        last[0] = np.maximum(last[0], self._before(block, int(rounds[0])))
        since: IntArray = np.maximum.accumulate(last, axis=0)
        self._reached = block, since[-1]
        return since

    def _before(self, block: int, first: int) -> IntArray:
        """Return the last drift of each client [C] before a block that begins with round ``first``; 0 for none."""
        if self._reached is not None and self._reached[0] == block - 1:
            return self._reached[1]
        last, waiting = np.zeros_like(self._clients), self._clients
        while first > 0 and waiting.size and self._lasting.drift:
            rounds = np.arange(max(0, first - STRETCH), first)
            drifts = self._drifts(rounds, waiting)
            last[waiting] = np.where(drifts, rounds[:, None], 0).max(axis=0)
            waiting, first = waiting[~drifts.any(axis=0)], int(rounds[0])
        return last

    def _drifts(self, rounds: IntArray, clients: IntArray) -> BoolArray:
        """Return whether the lasting pairs of each client are drawn again in each round, [rounds, clients]."""
        drifts: BoolArray = uniforms(self._drift, rounds[:, None], 0, clients)[0] < self._lasting.drift
        return drifts
