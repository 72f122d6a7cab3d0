"""The best set of clients that a service could have bought, where a set is worth the DQI of its images together.

The worth depends on two sums alone, of data sizes and of data sizes times EMDs. So of all sets with the same sums the
cheapest is kept, client by client; in small markets, whose clients draw from few data sizes and EMDs, these are few.
"""

from dataclasses import dataclass
from math import fsum

import numpy as np

from des.money import Micro, MicroArray
from fl.arrays import FloatArray, IntArray
from fl.data.dqi import DQIParameters
from flmarket.core.errors import InputError
from learning.client_selection.set_worth import union_worth

MOST_SETS = 500_000
"""Sets with different sums that are kept at once; with more it takes seconds for a service and round."""

_PARTS = 1_000_000  # sums of distances are told apart by these parts of an image at EMD 1


@dataclass(frozen=True, slots=True)
class ReportedData:
    """The data that clients report to a service."""

    size: IntArray  # [C] D
    emd: FloatArray  # [C]
    parameters: DQIParameters  # of eq. (6) for its data set

    def worth(self, clients: IntArray) -> float:
        """Return what clients are worth together."""
        distance = fsum((self.size[clients] * self.emd[clients]).tolist())
        return float(union_worth(self.size[clients].sum(), distance, self.parameters))


def best_union(
    data: ReportedData,
    prices: MicroArray,  # [C] micro-units, not negative
    budget: Micro,  # micro-units
    there: IntArray,  # [k] those who can be bought
) -> IntArray:
    """Return the set of clients that is worth the most at prices within a budget, ascending; of equal ones a cheapest.

    Raises:
        InputError: there are too many sets.
    """
    distances = np.rint(data.size * data.emd * _PARTS).astype(np.int64)
    sums = np.zeros((3, 1), dtype=np.int64)  # of prices, sizes and distances of each set
    # Each client, and where each set that is kept after it comes from: i if it is set i of those before, -1 - i if it
    # is that set with the client.
    stages: list[tuple[int, IntArray]] = []
    for client in there[(prices[there] <= budget) & (data.size[there] > 0)].tolist():
        fits = np.flatnonzero(sums[0] <= budget - prices[client])
        more = sums[:, fits] + np.array([[prices[client]], [data.size[client]], [distances[client]]])
        origin = np.concatenate([np.arange(sums.shape[1]), -1 - fits])
        sums = np.concatenate([sums, more], axis=1)
        order = np.lexsort(sums)  # by distance, then size, then price: the cheapest of equal ones first
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (np.diff(sums[1:, order], axis=1) != 0).any(axis=0)
        kept = order[first]
        if len(kept) > MOST_SETS:
            raise InputError(f"there are more than {MOST_SETS:,} different sets of clients to choose from")
        stages.append((client, origin[kept]))
        sums = sums[:, kept]
    worth = union_worth(sums[1], sums[2] / _PARTS, data.parameters)
    at = int(np.lexsort((sums[0], -worth))[0])
    chosen = []
    for client, origins in reversed(stages):
        at = int(origins[at])
        if at < 0:
            chosen.append(client)
            at = -1 - at
    return np.array(chosen[::-1], dtype=np.int64)
