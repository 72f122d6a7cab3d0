"""Clients that own images for the whole run: what each holds of them in a round.

That is everything, or as many of them as its data size says, drawn without replacement. It is a function of (seed,
round, service, client) alone, like all that clients hold; the EMD is that of the images drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from des.clients.client_data import Holdings
from des.clients.data_tables import Table, Valuation
from fl.arithmetic.draws import draw_key, subsets
from fl.arrays import FloatArray, IntArray
from fl.data.emd import counted_emd
from fl.data.partition import Pools


@dataclass(frozen=True, slots=True)
class DrawnImages:
    """The images that clients hold in a round, for each service [M]."""

    places: Sequence[IntArray]  # in ``pools``, client by client
    starts: Sequence[IntArray]  # [C + 1] where in ``places`` each client's begin
    pools: Sequence[Pools]

    def images(self, m: int, client: int) -> IntArray:
        """Return what a client holds for a service, indices into the training split."""
        own: IntArray = self.pools[m].images[self.places[m][slice(*self.starts[m][client : client + 2])]]
        return own

    def emds(self) -> FloatArray:
        """Return the EMD [M, C] of all data sets."""
        return np.stack([counted_emd(self._counts(m, pools)) for m, pools in enumerate(self.pools)])

    def _counts(self, m: int, pools: Pools) -> IntArray:
        """Return the images of each label that each client holds, [L, C]."""
        clients = len(pools.starts) - 1
        owner = np.repeat(np.arange(clients), np.diff(self.starts[m]))
        places = pools.label[self.places[m]] * clients + owner
        return np.bincount(places, minlength=pools.labels * clients).reshape(pools.labels, clients)


class OwnedData:
    """Draws what clients hold in each round."""

    def __init__(
        self,
        holdings: Holdings,  # draws the size that each client holds, an index into ``sizes``
        valuation: Valuation,  # values data
        sizes: Sequence[int] | None,  # the data sizes that there are, images; None: clients hold all that they own
        pools: Sequence[Pools],  # [M] of each service's data set
        seed: int,  # the run's seed
    ) -> None:
        self._holdings, self._valuation, self._pools = holdings, valuation, pools
        self._sizes = None if sizes is None else np.tile(np.array(sizes, dtype=np.int64), len(pools))
        self._key = draw_key(seed, "owned")
        self._drawn = lru_cache(maxsize=2)(self._draw)

    def at(self, round_: int) -> tuple[Table, IntArray, DrawnImages]:
        """Return a round's data: the table of it, the place [M, C] of each client's in a table, and the images."""
        return self._drawn(0 if self._sizes is None else round_)

    def _draw(self, round_: int) -> tuple[Table, IntArray, DrawnImages]:
        owned = np.stack([it.sizes for it in self._pools])  # [M, C]
        if self._sizes is None:
            places, starts = [np.arange(len(it.images)) for it in self._pools], [it.starts for it in self._pools]
            size = owned
        else:
            size = self._sizes[self._holdings.at(round_)[0]] * (owned > 0)
            places = [self._some(round_, m, own) for m, own in enumerate(size)]
            starts = [np.cumsum([0, *own.tolist()]) for own in size]
        drawn = DrawnImages(places, starts, self._pools)
        # Clients that own nothing are offline; they are drawn like all others, as if they held what another does.
        size = np.where(size, size, size[size > 0].min())
        return self._valuation.table(size, drawn.emds()), np.arange(size.size).reshape(size.shape), drawn

    def _some(self, round_: int, m: int, sizes: IntArray) -> IntArray:
        pools = self._pools[m]
        chosen = subsets(self._key, sizes, pools.sizes, round_, 0, m)
        return np.concatenate([own + start for own, (start, _) in zip(chosen, pairwise(pools.starts), strict=True)])
