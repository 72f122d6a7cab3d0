"""Traces of availability: CSV files with the header ``client,from,to``, such as ``0,1,40``.

A client is there from one round to another, both included, and may have several such intervals.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from des.schedule import Availability, Presence
from flmarket.core.errors import InputError
from flmarket.core.files import expanded, read_regular
from flmarket.core.text import printable
from scenarios.file.number_table import decoded, rows
from scenarios.file.partition import without_images
from scenarios.file.problems import number
from scenarios.file.schema import Scenario

COLUMNS = ("client", "from", "to")


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that was read."""

    intervals: tuple[Presence, ...]  # in the order of the file
    sha256: str  # of the file


def trace_of(scenario: Scenario) -> Trace | None:
    """Return the trace of when the scenario's clients are there; None if they always are."""
    path = scenario.clients.availability
    return None if path is None else read_trace(path, scenario.clients.count, scenario.rounds)


def require_same_trace(scenario: Scenario, meta: Mapping[str, Any], where: str) -> None:
    """Check that the trace is the one that meta.json records of a run."""
    if (trace := trace_of(scenario)) is not None and meta.get("availability") != {"sha256": trace.sha256}:
        text = printable(str(scenario.clients.availability))
        raise InputError(f"{where}: {text} is not the trace with which the run was played")


def availability_of(scenario: Scenario) -> Availability | None:
    """Return when the scenario's clients are there; None if they always are."""
    intervals = intervals_of(scenario)
    return None if intervals is None else Availability(scenario.clients.count, intervals)


def intervals_of(scenario: Scenario) -> Sequence[Presence] | None:
    """Return the intervals of the trace, without clients that own no image; None if all clients are always there."""
    trace, absent = trace_of(scenario), without_images(scenario)
    if trace is None and not absent:
        return None
    clients = range(scenario.clients.count)
    everything = [Presence(client, 1, scenario.rounds) for client in clients] if trace is None else trace.intervals
    return [interval for interval in everything if interval.client not in absent]


def read_trace(
    path: str,  # of the file; a relative one starts at the current folder, as those of data sets do
    clients: int,  # C
    rounds: int,  # N
) -> Trace:
    try:
        content = read_regular(expanded(path))
    except OSError as error:
        raise InputError(f"{printable(path)}: cannot be read: {error.strerror}") from error
    return _parsed(printable(path), content, clients, rounds)


@lru_cache(maxsize=4)
def _parsed(path: str, content: bytes, clients: int, rounds: int) -> Trace:
    found = [(where, _interval(where, row, clients)) for where, row in rows(path, decoded(path, content), COLUMNS)]
    _refuse_overlaps(found)
    intervals = tuple(interval for _, interval in found)
    _refuse_gaps(path, intervals, clients, rounds)
    return Trace(intervals, hashlib.sha256(content).hexdigest())


def _interval(where: str, row: list[int], clients: int) -> Presence:
    found = Presence(*row)
    if found.first < 1:
        raise InputError(f"{where}: from must be at least 1: rounds are counted from 1")
    if found.last < found.first:
        raise InputError(f"{where}: the interval from {found.first} to {found.last} is empty")
    if found.client >= clients:
        raise InputError(f"{where}: unknown client {number(found.client)}; clients are 0 to {number(clients - 1)}")
    return found


def _refuse_overlaps(found: list[tuple[str, Presence]]) -> None:
    in_order = sorted(enumerate(found), key=lambda item: item[1][1])
    for (place, (_, interval)), (next_place, (_, following)) in pairwise(in_order):
        if following.client == interval.client and following.first <= interval.last:
            earlier, later = (found[at][0] for at in sorted((place, next_place)))
            raise InputError(f"{later}: overlaps {earlier}, another interval of client {interval.client}")


def _refuse_gaps(path: str, intervals: tuple[Presence, ...], clients: int, rounds: int) -> None:
    """Refuse a client without a round, and a round without a client: either is a trace of another market.

    A client may be there after the last round alone: a run may be shorter than its trace.
    """
    there = np.zeros(rounds + 2, dtype=np.int64)
    seen = np.zeros(clients, dtype=np.bool_)
    for client, first, last in intervals:
        if first <= rounds:
            there[first] += 1
            there[min(last, rounds) + 1] -= 1
        seen[client] = True
    if not seen.all():
        client = int(np.flatnonzero(~seen)[0])
        raise InputError(f"{path}: client {client} is never there; give it an interval, or take it out of the market")
    if len(empty := np.flatnonzero(there.cumsum()[1 : rounds + 1] == 0)):
        raise InputError(
            f"{path}: in round {number(int(empty[0]) + 1)} of {number(rounds)} no client is there; each round needs one"
        )
