"""The clients of a market, and what their data are worth and cost: tables of what they can hold and report.

Where a scenario lists data sizes and EMDs, there are a few pairs of them, tabulated once. Elsewhere EMDs are
continuous: each round has a table of its own, one entry a client.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import TypeVar

import numpy as np

from des.behaviour import Behaviour, reports_of
from des.behaviours.truthful import Truthful
from des.clients.disclosure import Disclosure
from des.clients.mixture import Mixture
from des.cost import ALIKE, Cost, PrivateType, cost_ends, require_not_negative
from des.money import MicroArray
from des.response import Terms
from fl.arithmetic.elementary import rounded
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray
from fl.data.dqi import DQIParameters, dqi, dqi_range
from fl.data.emd import largest_emd, realised_emd
from fl.data.partition import Partition
from fl.training.jobs import Conduct
from flmarket.core.errors import InputError

T = TypeVar("T")

_GRID = 65
"""EMDs from 0 to the largest one at which clients are asked what they would report, where EMDs are continuous."""


@dataclass(frozen=True, slots=True)
class Group:
    """Clients that are alike."""

    count: int  # at least one
    data_sizes: tuple[int, ...]  # the set from which D is drawn, images
    emds: tuple[float, ...]  # the set from which the wanted EMD is drawn; not used where there is a ``concentration``
    cost: Cost  # what work on their data costs them
    # each client has one of these for the whole run; at speed 2 it takes half the timeline's time per sample
    speeds: tuple[float, ...] = (1.0,)
    # probability that a client leaves in the middle of a round in which it was awarded a job
    departure_rate: float = 0.0
    unit: PrivateType = ALIKE  # that each client draws once for the whole run; see ``des.cost``
    # that of the Dirichlet distribution from which label mixes are drawn; None: data sets have one of the EMDs. All
    # groups have one, or none has.
    concentration: float | None = None
    conduct: Conduct | None = None  # how their training departs from honest work; None: in nothing
    # bandwidths in Mbps, of which each client has one for the whole run; empty where models travel as long as the
    # timeline says, which those of all groups do, or none
    downloads: tuple[float, ...] = ()
    uploads: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Lasting:
    # the probability that a round keeps a client's lasting pair for a service, rather than draw another one for that
    # round alone; 0 as in the paper
    persistence: float = 0.0
    drift: float = 0.0  # in each round, the probability that a client's lasting pairs are drawn again, and stay


@dataclass(frozen=True, slots=True)
class PopulationSpec:
    cores: int  # K, how many services a client can serve at once (eq. 2)
    groups: tuple[Group, ...]  # all clients, in order from client 0
    # what clients bid, given their costs, and what they report of their data
    behaviour: Behaviour = field(default_factory=Truthful)
    lasting: Lasting = field(default_factory=Lasting)  # how far a client's data lasts from round to round
    # how far a round may multiply a client's costs, up or down; 0 to 1, see ``des.clients.disclosure.CostNoise``
    cost_noise: float = 0.0
    disclosure: Disclosure = field(default_factory=Disclosure)  # what services see of bids and DQI
    # [M] how the images of each service's data set are divided among the clients, who hold what they own; None: images
    # are drawn from all, and belong to nobody
    partitions: tuple[Partition, ...] | None = None
    everything: bool = False  # whether clients hold all that they own in each round
    devices: bool = False  # whether the speeds and bandwidths in one place are those of one device
    serves: BoolArray | None = None  # [M, C] whether a client can serve a service; None if all can serve all
    response: Terms | None = None  # how clients answer awards; None: they do all of the work

    @property
    def counts(self) -> list[int]:
        return [group.count for group in self.groups]

    def behaviour_of(self, group: int) -> Behaviour:
        """Return what the clients of a group bid and report, by its index."""
        return self.behaviour.of_group(group) if isinstance(self.behaviour, Mixture) else self.behaviour

    @property
    def count(self) -> int:  # C
        return sum(self.counts)

    @property
    def mixed(self) -> bool:
        """Whether label mixes are drawn from a Dirichlet distribution."""
        return self.groups[0].concentration is not None

    @property
    def costs_differ(self) -> bool:
        """Whether equal data cost clients of a group different amounts, by their speeds or private types."""
        return any(
            len(set(group.unit.ends)) > 1 or (group.cost.uses_speed and len(set(group.speeds)) > 1)
            for group in self.groups
        )

    @property
    def listed(self) -> bool:
        """Whether clients draw from listed pairs of a size and an EMD."""
        return not self.mixed and self.partitions is None


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of what clients can report in any round."""

    data_sizes: Collection[int]  # D, images
    dqi: tuple[FloatArray, FloatArray]  # the lowest [M] and the highest [M] DQI
    cost: tuple[MicroArray, MicroArray]  # the lowest [M] and the highest [M] cost, micro-units


@dataclass(frozen=True, slots=True)
class DataTables:
    """Data sets, read-only: arrays [tables, M, entries], what clients hold, then what they report, if that differs."""

    size: IntArray  # D, images
    emd: FloatArray  # the realised EMD (eq. 1)
    dqi: FloatArray  # Psi (eq. 6), 12 significant digits
    # what training on such data costs, micro-units: the same array twice, or the least and the most that it can cost
    cost: MicroArray
    highest_cost: MicroArray

    @property
    def ranges(self) -> Ranges:
        ends = [
            (low.min(axis=(0, 2)), high.max(axis=(0, 2)))
            for low, high in ((self.dqi, self.dqi), (self.cost, self.highest_cost))
        ]
        return Ranges(frozenset(self.size.ravel().tolist()), *ends)


@dataclass(frozen=True)
class DataSets:
    """Data sets of a round, as places in a table: [M, C], over services and clients, or [n]; arrays are read-only."""

    table: DataTables
    at: IntArray

    @cached_property
    def data_size(self) -> IntArray:  # D, images
        return self._of(self.table.size)

    @cached_property
    def emd(self) -> FloatArray:  # eq. 1
        return self._of(self.table.emd)

    @cached_property
    def dqi(self) -> FloatArray:  # Psi (eq. 6), 12 significant digits
        return self._of(self.table.dqi)

    def some(self, services: IntArray, clients: IntArray) -> "DataSets":
        """Return those of some services and clients. Of many clients, a round asks for few."""
        return DataSets(self.table, self.at[services, clients])

    def _of(self, column: AnyArray) -> AnyArray:
        values: AnyArray = column.take(self.at)
        values.setflags(write=False)
        return values


class Valuation:
    """Values the data that clients of a market hold."""

    def __init__(
        self,
        spec: PopulationSpec,  # the clients
        labels: Sequence[int],  # [M] L of each service's data set
        parameters: Sequence[DQIParameters],  # [M] DQI parameters of each service's data set
    ) -> None:
        self._spec, self._parameters, self._groups = spec, parameters, spec.groups
        self._labels = labels
        self._limits = np.array([[largest_emd(count)] for count in labels])
        self._each = np.repeat(np.arange(len(self._groups)), spec.counts)

    def table(
        self,
        size: IntArray,  # [M, entries]
        emd: FloatArray,  # [M, entries]
        groups: IntArray | None = None,  # [entries] the index of each one's group; None: an entry for each client
    ) -> DataTables:
        each, pairs = self._each if groups is None else groups, [(size, emd)]
        if self._spec.behaviour.misreports:
            pairs.append(self._reports(size, emd, each))
        sizes, emds = (np.stack(column) for column in zip(*pairs, strict=True))
        worth = [[dqi(d, v, p) for d, v, p in zip(*pair, self._parameters, strict=True)] for pair in pairs]
        if not np.isfinite(worth).all():
            raise InputError("the parameters of the data quality indicator (eq. 6) give values that are not finite")
        cost = self._cost(sizes, emds, each)
        return DataTables(sizes, emds, rounded(np.array(worth)), *cost)

    def of_each(self, size: IntArray, emd: FloatArray) -> DataSets:
        """Return data sets [M, C], each with an entry of its own in a table. Errors as in ``table``."""
        return DataSets(self.table(size, emd), np.arange(size.size).reshape(size.shape))

    def ranges(self) -> Ranges:
        """Return the ranges of what clients can report. Errors as in ``table``."""
        return self.listed().ranges if self._spec.listed else self.continuous()

    def listed(self) -> DataTables:
        """Return the table of all pairs of a listed size and a listed EMD, group by group. Errors as in ``table``."""
        pairs = [list(product(group.data_sizes, group.emds)) for group in self._groups]
        emds = [[realised_emd(d, v, count) for group in pairs for d, v in group] for count in self._labels]
        sizes = np.array([d for group in pairs for d, _ in group], dtype=np.int64)
        groups = np.repeat(np.arange(len(pairs)), list(map(len, pairs)))
        return self.table(np.tile(sizes, (len(self._labels), 1)), np.array(emds), groups)

    def continuous(self) -> Ranges:
        """Return the ranges where a data set of a listed size can have any EMD that its labels allow.

        Errors as in ``table``.
        """
        groups = [self._continuous(index) for index in range(len(self._groups))]
        each, lies = [group.data_sizes for group in groups], self._spec.behaviour.misreports
        sizes = range(min(map(min, each)), max(map(max, each)) + 1) if lies else frozenset[int]().union(*each)
        ends = ([getattr(group, name) for group in groups] for name in ("dqi", "cost"))
        return Ranges(sizes, *((np.min([low for low, _ in by], 0), np.max([high for _, high in by], 0)) for by in ends))

    def _continuous(self, index: int) -> Ranges:
        held = np.array(self._groups[index].data_sizes, dtype=np.int64)
        sizes: Collection[int] = frozenset(held.tolist())
        behaviour = self._spec.behaviour_of(index)
        if behaviour.misreports:
            emds = np.linspace(0.0, 1.0, _GRID) * self._limits  # [M, EMDs]
            size, emd = np.broadcast_arrays(held[:, None, None], emds)
            claimed = reports_of(behaviour, size, emd, self._limits)[0]
            sizes = range(int(min(held.min(), claimed.min())), int(max(held.max(), claimed.max())) + 1)
        lowest, highest = min(sizes), max(sizes)
        worth = [
            dqi_range((lowest, highest), limit, p) for [limit], p in zip(self._limits, self._parameters, strict=True)
        ]
        # DQI and cost go one way with the size, and the cost with the EMD, too.
        true_ends, claimed_ends = (
            np.array([low, low, high, high]) for low, high in ((held.min(), held.max()), (lowest, highest))
        )
        emds = np.tile([0.0, 1.0], 2) * self._limits
        size = np.stack([true_ends + 0 * emds, claimed_ends + 0 * emds])
        low, high = self._cost(size, np.stack([emds, emds]), np.full(4, index))
        dqi_ends = np.array(worth).T
        return Ranges(sizes, (dqi_ends[0], dqi_ends[1]), (low.min(axis=(0, 2)), high.max(axis=(0, 2))))

    def _reports(self, size: IntArray, emd: FloatArray, groups: IntArray) -> tuple[IntArray, FloatArray]:
        """Return what clients that misreport say of data [M, entries], given the group of each; see ``reports_of``."""
        behaviours = [self._spec.behaviour_of(i) for i in range(len(self._groups))]
        parts = [
            reports_of(behaviour, size[:, own], emd[:, own], self._limits)
            for behaviour, own in self._parts(behaviours, groups)
        ]
        sizes, emds = (np.concatenate(column, axis=1) for column in zip(*parts, strict=True))
        return sizes, emds

    def _cost(self, size: IntArray | FloatArray, emd: FloatArray, groups: IntArray) -> tuple[MicroArray, MicroArray]:
        """Return the lowest and the highest costs of data [tables, M, entries], what is held first.

        Args:
            size, emd: the data.
            groups: [entries] the index of each one's group, ascending.

        Raises:
            CostError: data that are held cost less than nothing.
        """
        parts = list(self._parts(self._groups, groups))
        ends = [cost_ends(group.cost, size[..., own], emd[..., own], group.speeds, group.unit) for group, own in parts]
        for (group, own), (lowest, _) in zip(parts, ends, strict=True):
            require_not_negative(group.cost, lowest[0], size[0][:, own], emd[0][:, own])
        low, high = ends[0] if len(ends) == 1 else (np.concatenate(each, axis=2) for each in zip(*ends, strict=True))
        least = np.maximum(low, 0)  # no client asks less than nothing, whatever it says of its data
        return least, least if all(one is other for one, other in ends) else np.maximum(high, 0)

    def _parts(self, each: Sequence[T], groups: IntArray) -> Iterator[tuple[T, slice]]:
        """Yield what there is for each group that entries are of, with their places."""
        first = np.searchsorted(groups, np.arange(len(each) + 1)).tolist()
        for one, (begin, end) in zip(each, pairwise(first), strict=True):
            if begin < end:
                yield one, slice(begin, end)
