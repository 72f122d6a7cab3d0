"""The conditions of a round: budgets, K, who is there; how traces, draws and interventions change them in a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from des.clock import NEVER, Microseconds
from des.money import MICRO, Micro
from fl.arithmetic.draws import draw_key, uniforms
from fl.arithmetic.elementary import log
from fl.arrays import BoolArray, IntArray


class Presence(NamedTuple):
    """Rounds in which a client is there, both ends included."""

    client: int
    first: int
    last: int


class Availability:
    """Says who is offline in a round: all for whom no interval says otherwise."""

    def __init__(self, clients: int, intervals: Sequence[Presence] | IntArray) -> None:
        self._clients = clients
        self._client, self._first, self._last = np.array(intervals, dtype=np.int64).reshape(-1, 3).T

    def offline(self, round_: int) -> frozenset[int]:
        """Return the clients that cannot be selected in a round."""
        return self._others(self._client[(self._first <= round_) & (round_ <= self._last)])

    def _others(self, there: IntArray) -> frozenset[int]:
        away = np.ones(self._clients, dtype=np.bool_)
        away[there] = False
        return frozenset(np.flatnonzero(away).tolist())

    def is_there(self, client: int, now: Microseconds) -> bool:
        """Return whether a client that can be selected in a round takes work at an instant of it."""
        return True

    def cut(self, client: int, now: Microseconds) -> Microseconds:
        """Return how long a client that is there will work, at most."""
        return NEVER

    def coming(self, start: Microseconds, end: Microseconds) -> list[tuple[Microseconds, int]]:
        """Return when which clients come between two instants."""
        return []


class OnlineTimes(Availability):
    """Clients that come and go at any instant, in rounds of one length, all of which they can be selected in."""

    def __init__(
        self,
        clients: int,
        intervals: IntArray,  # [n, 3] the client, when it comes, and when it goes: then it is not there any more
        period: Microseconds,
        *,
        ends_work: bool,  # whether a client that goes loses the job at which it works
    ) -> None:
        super().__init__(clients, intervals[np.argsort(intervals[:, 1], kind="stable")])
        self._period, self._ends_work = period, ends_work
        order = np.argsort(self._client, kind="stable")
        self._own_first, self._own_last = self._first[order], self._last[order]
        self._begins = np.searchsorted(self._client[order], np.arange(clients + 1)).tolist()

    def offline(self, round_: int) -> frozenset[int]:
        before = np.searchsorted(self._first, round_ * self._period)
        return self._others(self._client[:before][self._last[:before] > (round_ - 1) * self._period])

    def _goes(self, client: int, now: Microseconds) -> Microseconds:
        """Return when a client goes that is there now; now, or earlier, for another."""
        begin, end = self._begins[client], self._begins[client + 1]
        at = begin + int(np.searchsorted(self._own_first[begin:end], now, side="right")) - 1
        return int(self._own_last[at]) if at >= begin else now

    def is_there(self, client: int, now: Microseconds) -> bool:
        return self._goes(client, now) > now

    def cut(self, client: int, now: Microseconds) -> Microseconds:
        return self._goes(client, now) - now if self._ends_work else NEVER

    def coming(self, start: Microseconds, end: Microseconds) -> list[tuple[Microseconds, int]]:
        places = slice(np.searchsorted(self._first, start, side="right"), np.searchsorted(self._first, end))
        return list(zip(self._first[places].tolist(), self._client[places].tolist(), strict=True))


DAY = 86_400 * MICRO


@dataclass(frozen=True, slots=True)
class ComingAndGoing:
    """Clients that stay, and are away, for exponential times. A run begins at midnight."""

    stay: Microseconds  # the mean
    away: Microseconds  # the mean, in the hours in which clients come
    hours: tuple[Microseconds, Microseconds] = (0, DAY)  # from one time of the day to another, perhaps of the next day
    elsewhen: float = 1.0  # the rate of coming in other hours, as a part of that in these

    def draw(self, clients: int, until: Microseconds, seed: int) -> IntArray:
        """Return the intervals that begin before an instant, as ``OnlineTimes`` takes them.

        As the run begins, a client is there with the probability of a process without hours that has gone on forever.
        """
        key, who = draw_key(seed, "presence"), np.arange(clients)
        there = uniforms(key, 0, 0, who)[0] * (self.stay + self.away) < self.stay
        now, found, step = np.zeros(clients, dtype=np.int64), [np.empty((0, 3), dtype=np.int64)], 0
        while len(who):
            step += 1
            length, chance = uniforms(key, step, 0, who)
            mean = np.where(there, self.stay, self.away)
            then = now + np.maximum(1, np.rint(-log(1.0 - length) * mean)).astype(np.int64)
            found.append(np.stack([who, now, then], axis=1)[there])
            # where few come, some of those that would come at the full rate do not (thinning)
            there = ~there & ((chance < self.elsewhen) | self._in_hours(then))
            left = then < until
            who, now, there = who[left], then[left], there[left]
        return np.concatenate(found)

    def _in_hours(self, instants: IntArray) -> BoolArray:
        (begin, end), time = self.hours, instants % DAY
        after, before = time >= begin, time < end
        return after & before if begin <= end else after | before


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
