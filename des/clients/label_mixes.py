"""Clients whose label mixes are drawn from a Dirichlet distribution: what each holds in a round, and its label counts.

A mix is a function of (seed, round, service, client) alone, like all that clients hold (``des.clients.client_data``): a
lasting one of the round since which it lasts, from a stream of its own. So is a data set with its size, and its EMD is
that of its whole numbers of images. Only EMDs are kept; the label counts of clients that train are drawn again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from des.clients.client_data import FRESH, Holdings
from des.clients.data_tables import PopulationSpec, Table, Valuation
from fl.arithmetic.draws import draw_key
from fl.arrays import FloatArray, IntArray, UInt32Array
from fl.data.dirichlet import label_mixes, mixed_counts
from fl.data.emd import counted_emd


@dataclass(frozen=True, slots=True)
class LabelMixes:
    concentration: FloatArray  # [C] that of each client's Dirichlet distribution
    labels: Sequence[int]  # [M] L of each service's data set
    keys: UInt32Array  # [2, 2] the streams of fresh and of lasting mixes
    round: int  # n
    since: IntArray | None  # [M, C] the round in which a mix that lasts was drawn, or ``FRESH``; None if all are fresh

    def emds(self, sizes: IntArray) -> FloatArray:
        """Return the EMD [M, C] of all data sets, given their sizes [M, C]."""
        clients = np.arange(sizes.shape[1])
        return np.stack([counted_emd(self._counts(m, clients, own)) for m, own in enumerate(sizes)])

    def counts(self, m: int, clients: Sequence[int], sizes: IntArray) -> list[tuple[int, ...]]:
        """Return the images of each label that the data sets of clients for a service have, given their sizes."""
        counts = self._counts(m, np.array(clients, dtype=np.int64), sizes)
        return list(map(tuple, counts.T.tolist()))

    def _counts(self, m: int, clients: IntArray, sizes: IntArray) -> IntArray:
        key, round_ = self.keys[0], np.full(len(clients), self.round)
        if self.since is not None:
            since = self.since[m, clients]
            lasts = since != FRESH
            key, round_ = self.keys[lasts.astype(np.int64)], np.where(lasts, since, round_)
        keys, shares = np.broadcast_to(key, (len(clients), 2)), np.empty((self.labels[m], len(clients)))
        for a in np.unique(own := self.concentration[clients]).tolist():
            alike = own == a
            shares[:, alike] = label_mixes(keys[alike], a, self.labels[m], round_[alike], m, clients[alike])
        return mixed_counts(sizes, shares)


class MixedData:
    """Draws what clients hold in each round."""

    def __init__(
        self,
        holdings: Holdings,  # draws the size that each client holds, an index into those of its group
        valuation: Valuation,  # values data
        spec: PopulationSpec,  # the clients
        labels: Sequence[int],  # [M] L of each service's data set
        seed: int,  # the run's seed
    ) -> None:
        self._holdings, self._valuation = holdings, valuation
        groups = spec.everyone
        self._sizes = np.tile(np.array([size for it in groups for size in it.data_sizes], np.int64), len(labels))
        self._labels = tuple(labels)
        self._concentration = np.repeat(np.array([it.concentration for it in groups], np.float64), spec.counts)
        self._keys = np.stack([draw_key(seed, "labels"), draw_key(seed, "lasting labels")])
        self.at = lru_cache(maxsize=2)(self._draw)

    def _draw(self, round_: int) -> tuple[Table, IntArray, LabelMixes]:
        """Return a round's data: the table of it, the place [M, C] of each client's in a table, and the label mixes."""
        places, since = self._holdings.at(round_)
        mixes = LabelMixes(self._concentration, self._labels, self._keys, round_, since)
        size = self._sizes[places]
        return self._valuation.table(size, mixes.emds(size)), np.arange(size.size).reshape(size.shape), mixes
