"""Traces of availability: CSV files that say in which rounds each client is there.

    client,from,to
    0,1,40
    0,55,80

A client is there from one round to another, both included, and may have several such intervals.
"""

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from des.availability import Availability, Interval
from flmarket.core.errors import InputError
from flmarket.core.home import expanded
from flmarket.core.printable import printable
from scenarios.file.problems import Finding, number
from scenarios.file.readable import Readable
from scenarios.file.schema import Scenario

COLUMNS = ("client", "from", "to")
LARGEST = 100_000_000  # bytes of a trace


class TraceError(InputError):
    """A trace cannot be used; the message names the file and the line."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that was read."""

    intervals: tuple[Interval, ...]  # in the order of the file
    sha256: str  # of the file


def read_trace(
    path: str,  # of the file; a relative one starts at the current folder, as those of data sets do
    clients: int,  # C
    rounds: int,  # N
) -> Trace:
    """Read and check a trace."""
    file = expanded(path)
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise TraceError(f"{printable(path)}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > LARGEST:
        raise TraceError(f"{printable(path)}: is larger than {number(LARGEST)} bytes")
    return _parsed(printable(path), content, clients, rounds)


@lru_cache(maxsize=4)
def _parsed(path: str, content: bytes, clients: int, rounds: int) -> Trace:
    try:
        lines = list(_lines(path, content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}:{content.count(10, 0, error.start) + 1}: is not UTF-8 text") from error
    for line, interval in lines:
        if not 0 <= interval.client < clients:
            raise TraceError(
                f"{path}:{line}: unknown client {number(interval.client)}; clients are 0 to {number(clients - 1)}"
            )
    _refuse_overlaps(path, lines)
    intervals = tuple(interval for _, interval in lines)
    refuse_gaps(path, intervals, clients, rounds)
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
    values = []
    for name, text in zip(COLUMNS, row, strict=True):
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise TraceError(f"{where}: {name} must be a whole number below a billion, not {printable(text[:20])!r}")
        values.append(int(text))
    found = Interval(*values)
    if found.first < 1:
        raise TraceError(f"{where}: from must be at least 1: rounds are counted from 1")
    if found.last < found.first:
        raise TraceError(f"{where}: the interval from {found.first} to {found.last} is empty")
    return found


def _refuse_overlaps(path: str, lines: list[tuple[int, Interval]]) -> None:
    before: tuple[int, Interval] | None = None
    for line, interval in sorted(lines, key=lambda item: (item[1], item[0])):
        if before is not None and before[1].client == interval.client and interval.first <= before[1].last:
            later, earlier = max(line, before[0]), min(line, before[0])
            raise TraceError(f"{path}:{later}: overlaps line {earlier}, another interval of client {interval.client}")
        before = line, interval


def refuse_gaps(path: str, intervals: tuple[Interval, ...], clients: int, rounds: int) -> None:
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


def trace_of(scenario: Scenario) -> Trace | None:
    """Return the trace of when the scenario's clients are there; None if they always are."""
    path = scenario.clients.availability
    return None if path is None else read_trace(path, scenario.clients.count, scenario.rounds)


def availability_of(scenario: Scenario) -> Availability | None:
    """Return when the scenario's clients are there; None if they always are. Errors as in ``trace_of``."""
    trace = trace_of(scenario)
    return None if trace is None else Availability(scenario.clients.count, trace.intervals)


def check_availability(readable: Readable) -> Iterator[Finding]:
    """Yield what is wrong with the trace of a scenario."""
    path, count, rounds = (
        readable.get(*key) for key in (("clients", "availability"), ("clients", "count"), ("rounds",))
    )
    if path is not None and count is not None and rounds is not None:
        try:
            read_trace(path, count, rounds)
        except InputError as error:
            yield Finding(("clients", "availability"), str(error))
