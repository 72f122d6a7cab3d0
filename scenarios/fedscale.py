"""Traces of availability from FedScale's: when 107,749 phones were idle, charging and online.

The public file ``client_behave_trace`` is a pickle of a dictionary, ``{client: {"active": [...], "inactive": [...],
"finish_time": ..., ...}}``: a client is there from each time in ``active`` to the one at the same place in
``inactive``, in seconds, and all of that begins again at ``finish_time``. The pickle is read and never executed
(``fl.plain_pickle``); JSON of the same shape will do as well. Source: Lai et al., "FedScale: benchmarking model and
system performance of federated learning at scale", ICML 2022.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from des.availability import Interval
from fl.arrays import BoolArray, FloatArray
from fl.errors import InputError
from fl.files import write_rows
from fl.plain_pickle import PickleError, loads
from fl.printable import printable
from scenarios.file.availability import COLUMNS, refuse_gaps
from scenarios.file.problems import number

LARGEST = 1_000_000_000
"""Bytes of a file of traces."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A trace that was converted.

    Attributes:
        intervals: of clients 0 to ``clients - 1``.
        clients: how many clients there are.
        left_out: clients of the file that are not there at the beginning of any round.
    """

    intervals: Sequence[Interval]
    clients: int
    left_out: int


def convert(path: Path, rounds: int, seconds: float, clients: int | None = None) -> Converted:
    """Convert FedScale's traces.

    A client is there in a round if it is when the round begins: round n begins after n - 1 times ``seconds``. Clients
    that are never there are left out, and the others are numbered from 0, in the order of the file.

    Args:
        path: the file.
        rounds: N.
        seconds: length of a round.
        clients: how many clients to take, the first of the file; all if not given.

    Raises:
        InputError: the file cannot be read, or is something else; it has too few clients; or there is a round without
            a client.
    """
    name = printable(str(path))
    times: FloatArray = np.arange(rounds, dtype=np.float64) * np.float64(seconds)
    found: list[Interval] = []
    taken = left_out = 0
    for client, trace in _read(path, name).items():
        if clients is not None and taken == clients:
            break
        there = _there(f"{name}: client {printable(str(client)[:40])}", trace, times)
        if not there.any():
            left_out += 1
            continue
        found += [Interval(taken, first, last) for first, last in _stretches(there)]
        taken += 1
    if taken < (clients or 1):
        raise InputError(
            f"{name}: only {number(taken)} clients are there at the beginning of a round, not {number(clients or 1)}"
        )
    refuse_gaps(name, tuple(found), taken, rounds)
    return Converted(found, taken, left_out)


def write(trace: Converted, out: Path) -> None:
    """Write a trace as a CSV file that ``clients.availability`` can name.

    Raises:
        InputError: it cannot be written.
    """
    write_rows(out, COLUMNS, trace.intervals)


def _read(path: Path, name: str) -> Mapping[Any, Any]:
    """Return the clients' traces."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise InputError(f"{name}: is larger than {number(LARGEST)} bytes")
    try:
        content = content.removeprefix(BOM_UTF8)
        traces = json.loads(content) if content.lstrip()[:1] == b"{" else loads(content)
    except PickleError as error:
        raise InputError(f"{name}: {printable(str(error))}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: is not JSON: {printable(str(error))}") from error
    if not isinstance(traces, dict) or not traces:
        raise InputError(f"{name}: is not a dictionary of clients, as FedScale's traces are")
    return traces


def _there(where: str, trace: Any, times: FloatArray) -> BoolArray:
    """Return whether a client is there at each of some times."""
    if not isinstance(trace, dict):
        raise InputError(f"{where}: is not a dictionary with active, inactive and finish_time")
    active, inactive = (_seconds(f"{where}: {key}", trace.get(key)) for key in ("active", "inactive"))
    [finish] = _seconds(f"{where}: finish_time", [trace.get("finish_time")])
    if len(active) != len(inactive):
        raise InputError(f"{where}: active has {len(active)} times, but inactive has {len(inactive)}")
    if finish <= 0:
        raise InputError(f"{where}: finish_time must be above 0, not {finish:g}")
    now = np.fmod(times, finish)[:, None]
    there: BoolArray = ((active <= now) & (now <= inactive)).any(axis=1)
    return there


def _seconds(where: str, values: Any) -> FloatArray:
    if not isinstance(values, list | tuple):
        raise InputError(f"{where}: is not a list of times")
    for value in values:
        if type(value) not in (int, float) or not 0 <= value < 1e15:
            raise InputError(f"{where}: {printable(repr(value)[:40])} is not a time in seconds")
    return np.array(values, dtype=np.float64)


def _stretches(there: BoolArray) -> Iterator[tuple[int, int]]:
    """Yield the first and the last round of each stretch in which a client is there."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]]).astype(np.int8)))
    for first, after in list(pairwise(edges.tolist()))[::2]:
        yield first + 1, after
