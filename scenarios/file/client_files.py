"""The files that a scenario names for its clients: which images they own, their devices, and when they are there.

``data.partition`` is a rule, such as ``shards(2)``, or a file that lists the images of each client: CSV with the header
``client,image``, or JSON, ``{"0": [17, 4], "1": [5]}``. Images are counted from 0, in the order of the data set's
training split.

``clients.devices`` is a CSV file with the header ``speed,download_mbps,upload_mbps``, a device in each line.

``clients.availability`` is a CSV file with the header ``client,from,to``, such as ``0,1,40``. A client is there from
one round to another, both included, and may have several such intervals.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from des.schedule import Availability, Presence
from fl.backends import BACKENDS
from fl.data.dirichlet import LEAST, MOST
from fl.data.partition import Dirichlet, Division, Iid, Listed, Partition, Shards
from fl.data.registry import info
from flmarket.core.errors import InputError
from flmarket.core.files import expanded, read_regular
from flmarket.core.text import counted, printable
from scenarios.file.problems import number
from scenarios.file.schema import LARGEST_SPEED, LEAST_SPEED, Scenario

_RULE = re.compile(r"(iid|dirichlet|shards)(?:\(([^()]*)\))?")
Number = TypeVar("Number", int, float)

_RULES = "iid, dirichlet(CONCENTRATION), shards(NUMBER)"


def records(scenario: Scenario) -> dict[str, Any]:
    """Return what meta.json records of the files that a scenario names for its clients: their digests."""
    files, partitions = (
        {"availability": trace_of(scenario), "devices": devices_of(scenario)},
        partition_digests(scenario),
    )
    return {
        **{name: {"sha256": file.sha256} for name, file in files.items() if file is not None},
        **({"partition": partitions} if partitions else {}),
    }


def partitions_of(scenario: Scenario) -> dict[str, Partition] | None:
    """Return how the images of each data set are divided among the clients; None where they belong to nobody."""
    if not scenario.data.given:
        return None
    names = dict.fromkeys(service.dataset for service in scenario.services)
    return {name: partition_of(scenario, name) for name in names}


def without_images(scenario: Scenario) -> frozenset[int]:
    """Return the clients that own no image. They are offline in all rounds.

    Raises:
        InputError: a client owns images of one data set, and none of another.
    """
    found = partitions_of(scenario) or {}
    none = {name: frozenset(np.flatnonzero(np.equal(it.sizes, 0)).tolist()) for name, it in found.items()}
    for name, own in none.items():
        for other, theirs in none.items():
            if lacking := sorted(own - theirs):
                raise InputError(
                    f"client {lacking[0]} owns images of {other!r}, but none of {name!r}; give it some, or take it out"
                )
    return next(iter(none.values()), frozenset())


def partition_digests(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of each file that lists the images of clients, by data set."""
    found = partitions_of(scenario) or {}
    return {name: it.division.sha256 for name, it in found.items() if isinstance(it.division, Listed)}


def require_same_clients(scenario: Scenario, meta: Mapping[str, Any], where: str) -> None:
    """Check that the files of the clients' images and devices are those that meta.json records of a run."""
    if (devices := devices_of(scenario)) is not None and meta.get("devices") != {"sha256": devices.sha256}:
        text = printable(str(scenario.clients.devices))
        raise InputError(f"{where}: {text} is not the file of devices with which the run was played")
    recorded = meta.get("partition")
    for name, digest in partition_digests(scenario).items():
        if not isinstance(recorded, Mapping) or recorded.get(name) != digest:
            text = printable(str(scenario.data.partition_of(name)))
            raise InputError(f"{where}: {text} is not the file with which the run was played")


def partition_of(scenario: Scenario, name: str) -> Partition:
    """Return how the images of one data set are divided."""
    text, clients = scenario.data.partition_of(name), scenario.clients.count
    if text is None:
        raise InputError(f"{name!r} has none, and other data sets have one; give all of them one, or none")
    trains = BACKENDS[scenario.training.backend].trains
    division = _division(text, clients, info(name).train_size)
    found = Partition(name, division, clients, scenario.training.validation if trains else 0.0)
    if isinstance(division, Listed):
        if found.validation:
            raise InputError(
                f"{printable(text)}: all images of a file belong to clients; set training.validation = 0, which "
                "measures accuracy on the test images"
            )
    elif not min(found.sizes):
        raise InputError(f"{text}: the training images of {name!r} are too few for {number(clients)} clients")
    least, groups = min(filter(None, found.sizes)), scenario.clients.groups
    for group, kind in scenario.clients.kinds():
        if short := [size for size in kind.data_size if size > least]:
            at = f"client {found.sizes.index(least)} owns" if len(found.sizes) > 1 else "each client owns"
            own = None if group is None or groups[group].data_size is None else groups[group].name
            key = "clients" if own is None else f"clients.groups.{own}"
            raise InputError(
                f"{printable(text)}: {at} {counted(least, 'image')} of {name!r}, fewer than the {number(short[0])} of "
                f"{key}.data_size"
            )
    return found


def _division(text: str, clients: int, images: int) -> Division:
    if match := _RULE.fullmatch(text.replace(" ", "")):
        rule, value = match.groups()
        try:
            if rule == "iid" and value is None:
                return Iid()
            if rule == "dirichlet" and LEAST <= float(value) <= MOST:
                return Dirichlet(float(value))
            if rule == "shards" and int(value) >= 1:
                return Shards(int(value))
        except (TypeError, ValueError):
            pass
        limits = f"a CONCENTRATION is {LEAST:g} to {MOST:g}, a NUMBER at least 1"
        raise InputError(f"{printable(text)}: must be one of {_RULES}, or a file; {limits}")
    try:
        content = read_regular(expanded(text))
    except OSError as error:
        raise InputError(f"{printable(text)} is neither {_RULES} nor a file: {error.strerror}") from error
    return _listed(printable(text), content, clients, images)


@lru_cache(maxsize=8)
def _listed(path: str, content: bytes, clients: int, images: int) -> Listed:
    own: list[list[int]] = [[] for _ in range(clients)]
    owner: dict[int, str] = {}
    for where, client, image in _entries(path, content):
        if client >= clients:
            raise InputError(f"{where}: unknown client {number(client)}; clients are 0 to {number(clients - 1)}")
        if image >= images:
            raise InputError(f"{where}: unknown image {number(image)}; images are 0 to {number(images - 1)}")
        if image in owner:
            raise InputError(f"{where}: image {image} is listed twice; see {owner[image]}")
        owner[image] = where
        own[client].append(image)
    if not owner:
        raise InputError(f"{path}: no client owns an image")
    arrays = tuple(np.array(listed, dtype=np.int64) for listed in own)
    return Listed(arrays, hashlib.sha256(content).hexdigest())


def _entries(path: str, content: bytes) -> Iterator[tuple[str, int, int]]:
    text = _decoded(path, content)
    if text.lstrip()[:1] in {"{", "["}:
        yield from _entries_of_json(path, text)
    else:
        for where, (client, image) in _rows(path, text, ("client", "image"), _whole):
            yield where, client, image


def _entries_of_json(path: str, text: str) -> Iterator[tuple[str, int, int]]:
    try:
        found = json.loads(text, object_pairs_hook=tuple)  # a mapping would forget a client that is listed twice
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise InputError(f"{path}: is nested too deeply") from error
    except ValueError as error:
        raise InputError(f"{path}: has a number of thousands of digits") from error
    if not isinstance(found, tuple) or not all(isinstance(own, list) for _, own in found):
        raise InputError(f'{path}: must list the images of each client: {{"0": [17, 4], "1": [5]}}')
    seen: set[int] = set()
    for client, own in found:
        where = f"{path}: client {printable(client[:20])}"
        if (index := _whole(f"{path}: client", client)) in seen:
            raise InputError(f"{where} is listed twice")
        seen.add(index)
        for image in own:
            yield where, index, _whole(f"{where}: image", str(image) if type(image) is int else repr(image))


class Devices(NamedTuple):
    """Devices that were read: the speed and the bandwidths, in Mbps, of each."""

    speed: tuple[float, ...]
    download: tuple[float, ...]
    upload: tuple[float, ...]
    sha256: str  # of the file


def devices_of(scenario: Scenario) -> Devices | None:
    """Return the devices of which the scenario's clients draw theirs; None if there is no file of them."""
    path = scenario.clients.devices
    return None if path is None else _devices(printable(path), _content(path))


@lru_cache(maxsize=4)
def _devices(path: str, content: bytes) -> Devices:
    columns = "speed", "download_mbps", "upload_mbps"
    rows = [row for _, row in _rows(path, _decoded(path, content), columns, _amount)]
    if not rows:
        raise InputError(f"{path}: has no devices")
    speed, download, upload = (tuple(column) for column in zip(*rows, strict=True))
    return Devices(speed, download, upload, hashlib.sha256(content).hexdigest())


def _amount(where: str, text: str) -> float:
    """Return a number that stands in a file as text."""
    if not re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,6})?", text) or not LEAST_SPEED <= float(text) <= LARGEST_SPEED:
        limits = f"from {LEAST_SPEED:f} to {number(LARGEST_SPEED)} with at most six decimals"
        raise InputError(f"{where} must be a number {limits}, not {printable(text[:20])!r}")
    return float(text)


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
    return _trace(printable(path), _content(path), clients, rounds)


@lru_cache(maxsize=4)
def _trace(path: str, content: bytes, clients: int, rounds: int) -> Trace:
    rows = _rows(path, _decoded(path, content), ("client", "from", "to"), _whole)
    placed = [(where, _interval(where, row, clients)) for where, row in rows]
    _refuse_overlaps(placed)
    intervals = tuple(interval for _, interval in placed)
    _refuse_gaps(path, intervals, clients, rounds)
    return Trace(intervals, hashlib.sha256(content).hexdigest())


def _interval(where: str, row: list[int], clients: int) -> Presence:
    interval = Presence(*row)
    if interval.first < 1:
        raise InputError(f"{where}: from must be at least 1: rounds are counted from 1")
    if interval.last < interval.first:
        raise InputError(f"{where}: the interval from {interval.first} to {interval.last} is empty")
    if interval.client >= clients:
        raise InputError(f"{where}: unknown client {number(interval.client)}; clients are 0 to {number(clients - 1)}")
    return interval


def _refuse_overlaps(placed: list[tuple[str, Presence]]) -> None:
    in_order = sorted(enumerate(placed), key=lambda item: item[1][1])
    for (place, (_, interval)), (next_place, (_, following)) in pairwise(in_order):
        if following.client == interval.client and following.first <= interval.last:
            earlier, later = (placed[at][0] for at in sorted((place, next_place)))
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


def _content(path: str) -> bytes:
    try:
        return read_regular(expanded(path))
    except OSError as error:
        raise InputError(f"{printable(path)}: cannot be read: {error.strerror}") from error


def _decoded(path: str, content: bytes) -> str:
    """Return a file's text."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}:{content.count(10, 0, error.start) + 1}: is not UTF-8 text") from error


def _rows(
    path: str, text: str, columns: Sequence[str], read: Callable[[str, str], Number]
) -> Iterator[tuple[str, list[Number]]]:
    """Yield the rows, each with its place, which is the file and the line; ``read`` reads the numbers in them."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if (found := next(reader, [])) != [*columns]:
            header = printable(",".join(found)[:40])
            raise InputError(f"{path}:1: must have the columns {','.join(columns)}, not {header!r}")
        for row in filter(None, reader):
            where = f"{path}:{reader.line_num}"
            if len(row) != len(columns):
                raise InputError(f"{where}: has {len(row)} values, not {len(columns)}")
            yield where, [read(f"{where}: {name}", value) for name, value in zip(columns, row, strict=True)]
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: is not CSV: {error}") from error


def _whole(where: str, text: str) -> int:
    """Return a number that stands in a file as text."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InputError(f"{where} must be a whole number below a billion, not {printable(text[:20])!r}")
    return int(text)
