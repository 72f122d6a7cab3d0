"""Traces of availability: CSV files with the header ``client,from,to``, such as ``0,1,40``.

A client is there from one round to another, both included, and may have several such intervals.
"""

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from des.availability import Availability, Interval
from flmarket.core.errors import InputError
from flmarket.core.home import expanded
from flmarket.core.printable import printable
from scenarios.file.problems import number
from scenarios.file.schema import Scenario

COLUMNS = ("client", "from", "to")


class TraceError(InputError):
    """A trace cannot be used; the message names the file and the line."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that was read."""

    intervals: tuple[Interval, ...]  # in the order of the file
    sha256: str  # of the file


def trace_of(scenario: Scenario) -> Trace | None:
    """Return the trace of when the scenario's clients are there; None if they always are."""
    path = scenario.clients.availability
    return None if path is None else read_trace(path, scenario.clients.count, scenario.rounds)


def availability_of(scenario: Scenario) -> Availability | None:
    """Return when the scenario's clients are there; None if they always are."""
    trace = trace_of(scenario)
    return None if trace is None else Availability(scenario.clients.count, trace.intervals)


def read_trace(
    path: str,  # of the file; a relative one starts at the current folder, as those of data sets do
    clients: int,  # C
    rounds: int,  # N
) -> Trace:
    """Read and check a trace."""
    try:
        content = expanded(path).read_bytes()
    except OSError as error:
        raise TraceError(f"{printable(path)}: cannot be read: {error.strerror}") from error
    return _parsed(printable(path), content, clients, rounds)


@lru_cache(maxsize=4)
def _parsed(path: str, content: bytes, clients: int, rounds: int) -> Trace:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}:{content.count(10, 0, error.start) + 1}: is not UTF-8 text") from error
    found = []
    for line, interval in _lines(path, text):
        if interval.client >= clients:
            raise TraceError(
                f"{path}:{line}: unknown client {number(interval.client)}; clients are 0 to {number(clients - 1)}"
            )
        found.append((line, interval))
    _refuse_overlaps(path, found)
    intervals = tuple(interval for _, interval in found)
    _refuse_gaps(path, intervals, clients, rounds)
    return Trace(intervals, hashlib.sha256(content).hexdigest())


def _lines(path: str, text: str) -> Iterator[tuple[int, Interval]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if tuple(next(reader, ())) != COLUMNS:
            raise TraceError(f"{path}:1: must have the columns {','.join(COLUMNS)}")
        for row in reader:
            if row:
                yield reader.line_num, _interval(f"{path}:{reader.line_num}", row)
    except csv.Error as error:
        raise TraceError(f"{path}:{reader.line_num}: is not CSV: {error}") from error


def _interval(where: str, row: list[str]) -> Interval:
    if len(row) != len(COLUMNS):
        raise TraceError(f"{where}: has {len(row)} values, not {len(COLUMNS)}")
    for name, text in zip(COLUMNS, row, strict=True):
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise TraceError(f"{where}: {name} must be a whole number below a billion, not {printable(text[:20])!r}")
    found = Interval(*map(int, row))
    if found.first < 1:
        raise TraceError(f"{where}: from must be at least 1: rounds are counted from 1")
    if found.last < found.first:
        raise TraceError(f"{where}: the interval from {found.first} to {found.last} is empty")
    return found


def _refuse_overlaps(path: str, lines: list[tuple[int, Interval]]) -> None:
    in_order = sorted(lines, key=lambda item: item[1])
    for (line, interval), (next_line, following) in pairwise(in_order):
        if following.client == interval.client and following.first <= interval.last:
            earlier, later = sorted((line, next_line))
            raise TraceError(f"{path}:{later}: overlaps line {earlier}, another interval of client {interval.client}")


def _refuse_gaps(path: str, intervals: tuple[Interval, ...], clients: int, rounds: int) -> None:
    """Refuse a client without a round, and a round without a client: either is a trace of another market."""
    there = np.zeros(rounds + 2, dtype=np.int64)
    seen = np.zeros(clients, dtype=np.bool_)
    for client, first, last in intervals:
        if first <= rounds:
            there[first] += 1
            there[min(last, rounds) + 1] -= 1
            seen[client] = True
    if not seen.all():
        client = int(np.flatnonzero(~seen)[0])
        raise TraceError(
            f"{path}: client {client} is never there in rounds 1 to {number(rounds)}; give it an interval, or take it "
            "out of the market"
        )
    if len(empty := np.flatnonzero(there.cumsum()[1 : rounds + 1] == 0)):
        raise TraceError(
            f"{path}: in round {number(int(empty[0]) + 1)} of {number(rounds)} no client is there; each round needs one"
        )
