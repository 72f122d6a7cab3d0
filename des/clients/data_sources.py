"""Where clients' data come from: listed pairs of a size and an EMD, label mixes, or images that clients own.

Each client holds a listed pair, or a size, in each round: a fresh one, as in the paper, or one that lasts. All of it is
a function of (seed, round, service, client) alone, whatever rounds were asked for before.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, repeat

import numpy as np

from des.clients.data_tables import DataSets, Lasting, PopulationSpec, Ranges, Valuation
from fl.arithmetic.draws import draw_key, integers, subsets, uniforms
from fl.arrays import BoolArray, FloatArray, IntArray, UInt32Array
from fl.data.dirichlet import label_mixes, mixed_counts
from fl.data.emd import counted_emd
from fl.data.partition import Pools

BLOCK = 4096
"""Draws that are made ahead at once: as many rounds as that takes, because a call costs more than its numbers."""

FRESH = -1  # in place of a round, for a pair that was drawn for the present round alone

STRETCH = 64  # rounds that are searched at once for the last drift before a round that was not reached step by step


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


Origins = tuple[Iterable[int | None], Iterable[tuple[int, ...] | None], Iterable[IntArray | None]]
"""Where the images of some jobs come from: ``mix``, ``counts`` and ``images`` of each ``TrainingJob``."""

_NONE: Iterable[None] = repeat(None)


class DataSource(ABC):
    ranges: Ranges  # what clients can report of it in any round

    @abstractmethod
    def in_round(self, round_: int) -> DataSets:
        """Return what clients hold in a round, [M, C]."""

    @abstractmethod
    def origins(self, round_: int, m: int, clients: Sequence[int]) -> Origins:
        """Return where the images come from that clients hold in a round for service ``m``."""


class ListedData(DataSource):
    """Listed pairs of a size and an EMD: images are drawn from all, by a label mix that has the EMD."""

    def __init__(self, holdings: Holdings, valuation: Valuation) -> None:
        self._holdings, self._table = holdings, valuation.listed()
        self.ranges = self._table.ranges

    def in_round(self, round_: int) -> DataSets:
        return DataSets(self._table, self._holdings.at(round_)[0])

    def origins(self, round_: int, m: int, clients: Sequence[int]) -> Origins:
        since = self._holdings.at(round_)[1]
        mixes = _NONE if since is None else [None if n == FRESH else n for n in since[m, clients].tolist()]
        return mixes, _NONE, _NONE


class MixedData(DataSource):
    """Label mixes from a Dirichlet distribution: the EMD of a data set is that of its whole numbers of images.

    A mix lasts as long as the size does, and is then drawn from a stream of its own. Only EMDs are kept; the label
    counts of clients that train are drawn again.
    """

    def __init__(
        self,
        holdings: Holdings,  # draws the place in ``sizes`` of each client's data size
        valuation: Valuation,
        sizes: IntArray,
        concentration: FloatArray,  # [C] that of each client's distribution
        labels: Sequence[int],  # [M] L of each service's data set
        seed: int,  # the run's seed
    ) -> None:
        self.ranges = valuation.continuous()
        self._holdings, self._valuation, self._sizes = holdings, valuation, sizes
        self._concentration, self._labels = concentration, tuple(labels)
        self._keys = np.stack([draw_key(seed, "labels"), draw_key(seed, "lasting labels")])
        self._drawn = lru_cache(maxsize=2)(self._draw)

    def in_round(self, round_: int) -> DataSets:
        return self._drawn(round_)

    def origins(self, round_: int, m: int, clients: Sequence[int]) -> Origins:
        sizes = self._drawn(round_).table.size[0, m].take(clients)
        counts = self._counts(round_, m, np.array(clients, dtype=np.int64), sizes)
        return _NONE, map(tuple, counts.T.tolist()), _NONE

    def _draw(self, round_: int) -> DataSets:
        size = self._sizes[self._holdings.at(round_)[0]]
        clients = np.arange(size.shape[1])
        emds = np.stack([counted_emd(self._counts(round_, m, clients, row)) for m, row in enumerate(size)])
        return self._valuation.of_each(size, emds)

    def _counts(self, round_: int, m: int, clients: IntArray, sizes: IntArray) -> IntArray:
        """Return the images of each label in data sets of some sizes, [L, clients]."""
        key, drawn = self._keys[0], np.full(len(clients), round_)  # the stream of each mix, and its round
        if (everyone := self._holdings.at(round_)[1]) is not None:
            since = everyone[m, clients]
            lasts = since != FRESH
            key, drawn = self._keys[lasts.astype(np.int64)], np.where(lasts, since, drawn)
        keys, shares = np.broadcast_to(key, (len(clients), 2)), np.empty((self._labels[m], len(clients)))
        concentration = self._concentration[clients]
        for a in np.unique(concentration).tolist():
            alike = concentration == a
            shares[:, alike] = label_mixes(keys[alike], a, self._labels[m], drawn[alike], m, clients[alike])
        return mixed_counts(sizes, shares)


class OwnedData(DataSource):
    """Images that clients own for the whole run.

    A client holds all of them, or as many as its data size says, drawn without replacement; the EMD is theirs.
    """

    def __init__(
        self,
        holdings: Holdings,  # draws the place in ``sizes`` of each client's data size
        valuation: Valuation,
        sizes: IntArray | None,  # None: clients hold all that they own
        pools: Sequence[Pools],  # [M] of each service's data set
        seed: int,  # the run's seed
    ) -> None:
        self.ranges = valuation.continuous()
        self._holdings, self._valuation, self._sizes, self._pools = holdings, valuation, sizes, pools
        self._key = draw_key(seed, "owned")
        self._drawn = lru_cache(maxsize=2)(self._draw)

    def in_round(self, round_: int) -> DataSets:
        return self._images_in(round_)[0]

    def origins(self, round_: int, m: int, clients: Sequence[int]) -> Origins:
        places, starts = self._images_in(round_)[1][m]
        return _NONE, _NONE, [self._pools[m].images[places[slice(*starts[client : client + 2])]] for client in clients]

    def _images_in(self, round_: int) -> tuple[DataSets, list[tuple[IntArray, IntArray]]]:
        """Return a round's data, and where each service's pools have it: the last two arguments of ``_emd``."""
        return self._drawn(0 if self._sizes is None else round_)

    def _draw(self, round_: int) -> tuple[DataSets, list[tuple[IntArray, IntArray]]]:
        size = np.stack([pools.sizes for pools in self._pools])  # [M, C]
        if self._sizes is None:
            drawn = [(np.arange(len(pools.images)), pools.starts) for pools in self._pools]
        else:
            size = self._sizes[self._holdings.at(round_)[0]] * (size > 0)
            drawn = [(self._some(round_, m, row), np.cumsum([0, *row.tolist()])) for m, row in enumerate(size)]
        emds = np.stack([_emd(pools, *each) for pools, each in zip(self._pools, drawn, strict=True)])
        # Clients that own nothing are offline; they are drawn like all others, as if they held what another does.
        return self._valuation.of_each(np.where(size, size, size[size > 0].min()), emds), drawn

    def _some(self, round_: int, m: int, sizes: IntArray) -> IntArray:
        """Return the places in a service's pools of as many images of each client, client by client."""
        pools = self._pools[m]
        chosen = subsets(self._key, sizes, pools.sizes, round_, 0, m)
        return np.concatenate([some + start for some, (start, _) in zip(chosen, pairwise(pools.starts), strict=True)])


def _emd(
    pools: Pools,
    places: IntArray,  # of images in the pools, client by client
    starts: IntArray,  # [C + 1] where in ``places`` each client's begin
) -> FloatArray:
    """Return the EMD [C] of each client's images."""
    clients = len(starts) - 1
    owner = np.repeat(np.arange(clients), np.diff(starts))
    counts = np.bincount(pools.label[places] * clients + owner, minlength=pools.labels * clients)
    return counted_emd(counts.reshape(pools.labels, clients))


def data_source(
    spec: PopulationSpec,
    labels: Sequence[int],  # [M] L of each service's data set
    holdings: Holdings,  # draws the pair, or the size, that each client holds
    valuation: Valuation,
    seed: int,  # the run's seed
) -> DataSource:
    if spec.listed:
        return ListedData(holdings, valuation)
    sizes = np.tile(np.array([size for group in spec.groups for size in group.data_sizes], np.int64), len(labels))
    if spec.partitions is not None:
        pools = [partition.pools(seed) for partition in spec.partitions]
        return OwnedData(holdings, valuation, None if spec.everything else sizes, pools, seed)
    concentration = np.repeat(np.array([group.concentration for group in spec.groups], np.float64), spec.counts)
    return MixedData(holdings, valuation, sizes, concentration, labels, seed)
