"""The conditions of a round: budgets, K, who is offline; how a trace and interventions change them in a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from des.money import Micro
from fl.arrays import IntArray


class Presence(NamedTuple):
    """Rounds in which a client is there, both ends included."""

    client: int
    first: int
    last: int


class Availability:
    """Says who is offline in a round: all for whom no interval says otherwise."""

    def __init__(self, clients: int, intervals: Sequence[Presence]) -> None:
        self._all = np.arange(clients)
        self._client, self._first, self._last = np.array(intervals, dtype=np.int64).reshape(-1, 3).T

    def offline(self, round_: int) -> frozenset[int]:
        """Return the clients that cannot be selected in a round."""
        there = self._client[(self._first <= round_) & (round_ <= self._last)]
        return frozenset(np.setdiff1d(self._all, there).tolist())


Rules = tuple[str, Mapping[str, Any]]  # A mechanism by name, and its options


@dataclass(frozen=True, slots=True)
class Change:
    """An intervention: a change from the start of a round on. What is None or absent stays as it is."""

    round: int  # the first round that it applies to
    budgets: Mapping[str, Micro] = field(default_factory=dict)  # new budgets by service, micro-units
    cores: int | None = None  # the new K
    offline: frozenset[int] | None = None  # all clients that are offline from then on; the others are available again
    # the mechanism that clears the rounds from then on. It begins fresh: it has seen no earlier round.
    rules: Rules | None = None
    cores_of: IntArray | None = field(default=None, compare=False)  # comes with ``cores``; see ``Conditions``


@dataclass(frozen=True, slots=True)
class Conditions:
    budgets: Mapping[str, Micro]  # B_m by service, micro-units
    cores: int  # K
    # clients that cannot be selected. Their data is drawn like all others': the world stays the same.
    offline: frozenset[int] = frozenset()
    # says which other clients are offline in a round; None: none are
    availability: Availability | None = field(default=None, compare=False, repr=False)
    rules: Rules | None = None  # the mechanism that a change has put in the place of the first one, if any
    # [C] how many services each client can serve at once, at most K; None if all can serve K
    cores_of: IntArray | None = field(default=None, compare=False, repr=False)

    @property
    def capacity(self) -> int | IntArray:
        """K, or what each client has where some have less."""
        return self.cores if self.cores_of is None else self.cores_of


@dataclass(frozen=True, slots=True)
class Schedule:
    first: Conditions  # those before any change
    changes: Sequence[Change] = ()  # all of the run, in any order

    def at(self, round_: int, slot: int | None = None) -> Conditions:
        """Return what a round is played under, past or future: the first conditions after all changes up to it.

        Who is there is said of slots; if not given, the round is one. They depend on the round and the slot alone, so a
        market that is restored at any round has the same ones.
        """
        now = self.first
        for change in sorted(self.changes, key=lambda change: change.round):
            if change.round <= round_:
                now = replace(
                    now,
                    budgets={**now.budgets, **change.budgets},
                    cores=now.cores if change.cores is None else change.cores,
                    cores_of=now.cores_of if change.cores is None else change.cores_of,
                    offline=now.offline if change.offline is None else change.offline,
                    rules=change.rules or now.rules,
                )
        if now.availability is not None:
            now = replace(now, offline=now.offline | now.availability.offline(round_ if slot is None else slot))
        return now

    @property
    def turning_points(self) -> list[int]:
        """The rounds from which on budgets or K may be others: the first, and those of changes."""
        return sorted({1, *(change.round for change in self.changes)})
