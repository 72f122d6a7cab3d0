"""Clients of several behaviours in one market, which behave towards it as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from des.behaviour import Behaviour, BehaviourError, Outcomes, Setting, bids_of, liars_of
from des.money import MicroArray
from fl.arrays import BoolArray, IntArray, read_only
from flmarket.core.plugin_errors import plugin_state

__all__ = ["Mixture"]


@dataclass(frozen=True, slots=True)
class Subpopulation:
    """The clients of one behaviour, which knows of no others."""

    behaviour: Behaviour
    clients: IntArray  # their numbers, ascending

    def outcomes(self, of_all: Outcomes) -> Outcomes:
        """Return the outcomes of the offers to these clients, numbered from 0."""
        mine = np.isin(of_all.clients, self.clients)
        return Outcomes(
            read_only(of_all.services[mine]),
            read_only(np.searchsorted(self.clients, of_all.clients[mine])),
            read_only(of_all.served[mine]),
            read_only(of_all.paid[mine]),
            read_only(of_all.cost[mine]),
        )


class Mixture(Behaviour):
    """Clients behave as their group does; groups that share an object behave as one."""

    def __init__(self, members: Sequence[Behaviour], counts: Sequence[int]) -> None:
        """Create it from the behaviour and the number of clients of each group, in the order of the clients."""
        self._members = tuple(members)
        each = np.repeat(np.arange(len(members)), counts)
        same = {id(it): [i for i, other in enumerate(members) if other is it] for it in members}
        self._parts = [
            Subpopulation(members[groups[0]], np.flatnonzero(np.isin(each, groups))) for groups in same.values()
        ]
        self.misreports = any(it.misreports for it in members)

    def of_group(self, group: int) -> Behaviour:
        """Return the behaviour of a group, by its index."""
        return self._members[group]

    def begin(self, setting: Setting) -> None:
        for part in self._parts:
            own = replace(setting, clients=len(part.clients), group=read_only(part.clients))
            part.behaviour.begin(own)

    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        bids = np.empty(costs.shape, dtype=np.int64)
        for part in self._parts:
            bids[:, part.clients] = bids_of(part.behaviour, round_, read_only(costs[:, part.clients]))
        return bids

    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        ends = [part.behaviour.bid_range(lowest, highest) for part in self._parts]
        return np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)

    def misreporting(self, round_: int) -> BoolArray:
        liars = np.zeros(sum(len(part.clients) for part in self._parts), dtype=np.bool_)
        for part in self._parts:
            if (own := liars_of(part.behaviour, round_, len(part.clients))) is not None:
                liars[part.clients] = own
        return liars

    def close(self, round_: int, outcomes: Outcomes) -> None:
        for part in self._parts:
            if part.behaviour.learns:
                part.behaviour.close(round_, part.outcomes(outcomes))

    def state(self) -> Mapping[str, Any]:
        """See ``Behaviour.state``: that of each behaviour."""
        return {"parts": [plugin_state(part.behaviour, "behaviour", BehaviourError) for part in self._parts]}

    def restore(self, state: Mapping[str, Any]) -> None:
        for part, own in zip(self._parts, state["parts"], strict=True):
            part.behaviour.restore(own)

    @property
    def learns(self) -> bool:
        """Whether any of them does."""
        return any(part.behaviour.learns for part in self._parts)
