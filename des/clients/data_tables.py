"""Worth and cost of data: tables of data sets that clients can hold, and of what they can report.

Where a scenario lists data sizes and EMDs, there are a few pairs of them, tabulated once. Where clients' label mixes
are drawn from a Dirichlet distribution, EMDs are continuous: each round has a table of its own, one entry a client.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from des.behaviours.behaviour import Behaviour, Truthful, reported
from des.clients.client_data import Lasting
from des.clients.disclosure import Disclosure
from des.money import MicroArray, to_micro
from fl.arithmetic.elementary import rounded
from fl.arrays import FloatArray, IntArray
from fl.data.dqi import DQIParameters, dqi, dqi_range
from fl.data.emd import largest_emd, realised_emd
from fl.data.partition import Partition
from flmarket.core.errors import InputError

_GRID = 65
"""EMDs from 0 to the largest one at which clients are asked what they would report, where EMDs are continuous."""


@dataclass(frozen=True, slots=True)
class PopulationSpec:
    count: int  # C
    cores: int  # K, how many services a client can serve at once (eq. 2)
    data_sizes: tuple[int, ...]  # the set from which D is drawn, images
    emds: tuple[float, ...]  # the set from which the wanted EMD is drawn; not used where there is a ``concentration``
    cost_per_sample: float  # a data set costs its client ``cost_per_sample * D - cost_per_emd * EMD``
    cost_per_emd: float
    # each client has one of these for the whole run; at speed 2 it takes half the timeline's time per sample
    speeds: tuple[float, ...] = (1.0,)
    # probability that a client leaves in the middle of a round in which it was awarded a job
    departure_rate: float = 0.0
    # what clients bid, given their costs, and what they report of their data
    behaviour: Behaviour = field(default_factory=Truthful)
    lasting: Lasting = field(default_factory=Lasting)  # how far a client's data lasts from round to round
    # how far a round may multiply a client's costs, up or down; 0 to 1, see ``des.clients.disclosure.Moods``
    cost_noise: float = 0.0
    disclosure: Disclosure = field(default_factory=Disclosure)  # what services see of bids and DQI
    # that of the Dirichlet distribution from which label mixes are drawn; None: data sets have one of the EMDs
    concentration: float | None = None
    # [M] how the images of each service's data set are divided among the clients, who hold what they own; None: images
    # are drawn from all, and belong to nobody
    partitions: tuple[Partition, ...] | None = None
    everything: bool = False  # whether clients hold all that they own in each round


@dataclass(frozen=True, slots=True)
class Table:
    """Data sets, read-only: arrays [tables, M, entries], what clients hold, then what they report, if that differs."""

    size: IntArray  # D, images
    emd: FloatArray  # the realised EMD (eq. 1)
    dqi: FloatArray  # Psi (eq. 6), 12 significant digits
    cost: MicroArray  # what training on such data costs, micro-units


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of what clients can report in any round."""

    data_sizes: Collection[int]  # D, images
    dqi: tuple[FloatArray, FloatArray]  # the lowest [M] and the highest [M] DQI
    cost: tuple[MicroArray, MicroArray]  # the lowest [M] and the highest [M] cost, micro-units


class Valuation:
    """Values the data that clients of a market hold."""

    def __init__(
        self,
        spec: PopulationSpec,  # the clients
        labels: Sequence[int],  # [M] L of each service's data set
        parameters: Sequence[DQIParameters],  # [M] DQI parameters of each service's data set
    ) -> None:
        self._spec, self._parameters = spec, parameters
        self._labels = labels
        self._limits = np.array([[largest_emd(count)] for count in labels])

    def table(self, size: IntArray, emd: FloatArray) -> Table:
        """Return the table of data sets of these sizes and EMDs, both [M, entries]."""
        pairs = [(size, emd)]
        if self._spec.behaviour.misreports:
            pairs.append(reported(self._spec.behaviour, size, emd, self._limits))
        sizes, emds = (np.stack(found) for found in zip(*pairs, strict=True))
        worth = [[dqi(d, v, p) for d, v, p in zip(*pair, self._parameters, strict=True)] for pair in pairs]
        if not np.isfinite(worth).all():
            raise InputError("the parameters of the data quality indicator (eq. 6) give values that are not finite")
        return Table(sizes, emds, rounded(np.array(worth)), self._cost(sizes, emds))

    def listed(self) -> tuple[Table, Ranges]:
        """Return the table of all pairs of a listed size and a listed EMD, in this order, and the ranges in it.

        Errors as in ``table``.
        """
        sizes, wanted = (found.ravel() for found in np.meshgrid(self._spec.data_sizes, self._spec.emds, indexing="ij"))
        emds = [
            [realised_emd(int(d), float(v), count) for d, v in zip(sizes, wanted, strict=True)]
            for count in self._labels
        ]
        found = self.table(np.tile(sizes.astype(np.int64), (len(self._labels), 1)), np.array(emds))
        ends = [(array.min(axis=(0, 2)), array.max(axis=(0, 2))) for array in (found.dqi, found.cost)]
        return found, Ranges(frozenset(found.size.ravel().tolist()), *ends)

    def continuous(self) -> Ranges:
        """Return the ranges where a data set of a listed size can have any EMD that its labels allow.

        Errors as in ``table``.
        """
        held = np.array(self._spec.data_sizes, dtype=np.int64)
        sizes: Collection[int] = frozenset(held.tolist())
        if self._spec.behaviour.misreports:
            emds = np.linspace(0.0, 1.0, _GRID) * self._limits  # [M, EMDs]
            size, emd = np.broadcast_arrays(held[:, None, None], emds)
            claimed = reported(self._spec.behaviour, size, emd, self._limits)[0]
            sizes = range(int(min(held.min(), claimed.min())), int(max(held.max(), claimed.max())) + 1)
        lowest, highest = min(sizes), max(sizes)
        worth = [
            dqi_range((lowest, highest), limit, p) for [limit], p in zip(self._limits, self._parameters, strict=True)
        ]
        # DQI and cost go one way with the size, and the cost with the EMD, too.
        own, other = (np.array([low, low, high, high]) for low, high in ((held.min(), held.max()), (lowest, highest)))
        emds = np.tile([0.0, 1.0], 2) * self._limits
        cost = self._cost(np.stack([own + 0 * emds, other + 0 * emds]), np.stack([emds, emds]))
        dqi_ends = np.array(worth).T
        return Ranges(sizes, (dqi_ends[0], dqi_ends[1]), (cost.min(axis=(0, 2)), cost.max(axis=(0, 2))))

    def _cost(self, size: IntArray | FloatArray, emd: FloatArray) -> MicroArray:
        """Return the costs of data [tables, M, entries], what is held first."""
        cost = to_micro(self._spec.cost_per_sample * size - self._spec.cost_per_emd * emd)
        if (cost[0] < 0).any():
            raise ValueError("a cost is negative: cost_per_emd outweighs cost_per_sample for the smallest data set")
        return np.maximum(cost, 0)  # no client asks less than nothing, whatever it says of its data
