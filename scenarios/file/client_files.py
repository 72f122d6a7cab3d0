"""The files that a scenario names for its clients: which images they own, their devices, and when they are there.

``data.partition`` is a rule, such as ``shards(2)``, or a file that lists the images of each client: CSV with the header
``client,image``, or JSON, ``{"0": [17, 4], "1": [5]}``. Images are counted from 0, in the order of the data set's
training split.

``clients.devices`` is a CSV file with the header ``speed,download_mbps,upload_mbps``, a device in each line.

``clients.availability`` is a CSV file with the header ``client,from,to``, such as ``0,1,40``. A client is there from
one round to another, both included, and may have several such intervals. With the header
``client,from_second,to_second`` intervals are in simulated seconds: a client comes at their start, and is gone at their
end.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from des.clock import Microseconds
from des.money import MICRO, to_micro
from des.schedule import Availability, OnlineTimes
from fl.arrays import IntArray
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
    files = {"availability": trace_of(scenario), "devices": devices_of(scenario)}
    partitions = _partition_digests(scenario)
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


def _partition_digests(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of each file that lists the images of clients, by data set."""
    found = partitions_of(scenario) or {}
    return {name: it.division.sha256 for name, it in found.items() if isinstance(it.division, Listed)}


def digests_in(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of the files for clients, by the names of a run's inputs, from ``records`` or a meta.json."""
    files = {name: record[name]["sha256"] for name in ("availability", "devices") if record.get(name)}
    return files | {f"partition/{name}": of for name, of in record.get("partition", {}).items()}


def require_same_files(
    scenario: Scenario,
    meta: Mapping[str, Any],  # what meta.json records of a run
    where: str | None = None,  # the beginning of messages; the key, if not given
    *,
    trace: bool = True,  # whether the trace matters
) -> None:
    """Check that the files that a scenario names for its clients are those that a run was played with."""
    if trace:
        _require_same_trace(scenario, meta, where or "clients.availability")
    _require_same_partitions(scenario, meta, where or "data.partition")
    _require_same_devices(scenario, meta, where or "clients.devices")


def _require_same_devices(scenario: Scenario, meta: Mapping[str, Any], where: str) -> None:
    """Check that the file of devices is the one that meta.json records of a run."""
    if (devices := devices_of(scenario)) is not None and meta.get("devices") != {"sha256": devices.sha256}:
        text = printable(str(scenario.clients.devices))
        raise InputError(f"{where}: {text} is not the file of devices with which the run was played")


def _require_same_partitions(scenario: Scenario, meta: Mapping[str, Any], where: str) -> None:
    """Check that files that list the images of clients are those that meta.json records of a run."""
    recorded = meta.get("partition")
    for name, digest in _partition_digests(scenario).items():
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
        for where, (client, image) in _rows(path, text, dict.fromkeys(("client", "image"), _whole)):
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
    rows = [row for _, row in _rows(path, _decoded(path, content), dict.fromkeys(columns, _amount))]
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


class Intervals(NamedTuple):
    """The intervals in which clients are there."""

    rows: IntArray  # [n, 3] the client, and its first and last round; or when it comes and goes, in microseconds
    instants: bool  # whether they are instants


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that was read."""

    intervals: Intervals  # in the order of the file
    sha256: str  # of the file


def trace_of(scenario: Scenario) -> Trace | None:
    """Return the trace of when the scenario's clients are there; None if they always are."""
    path = scenario.clients.availability
    return None if path is None else read_trace(path, scenario.clients.count, scenario.rounds)


def _require_same_trace(scenario: Scenario, meta: Mapping[str, Any], where: str) -> None:
    """Check that the trace is the one that meta.json records of a run."""
    if (trace := trace_of(scenario)) is not None and meta.get("availability") != {"sha256": trace.sha256}:
        text = printable(str(scenario.clients.availability))
        raise InputError(f"{where}: {text} is not the trace with which the run was played")


def availability_of(scenario: Scenario, seed: int) -> Availability | None:
    """Return when the scenario's clients are there; None if they always are."""
    intervals, clients = intervals_of(scenario, seed), scenario.clients
    if intervals is None:
        return None
    if not intervals.instants:
        return Availability(clients.count, intervals.rows)
    ends_work = clients.offline_work == "lost"
    period = to_micro(scenario.timeline.period or 0)
    return OnlineTimes(clients.count, intervals.rows, period, ends_work=ends_work)


def intervals_of(scenario: Scenario, seed: int) -> Intervals | None:
    """Return when clients are there, without those that own no image; None if all clients are always there."""
    trace, presence, absent = trace_of(scenario), scenario.clients.presence, without_images(scenario)
    count = scenario.clients.count
    if trace is not None:
        found = trace.intervals
    elif presence.given:
        found = Intervals(presence.drawn(count, to_micro(horizon(scenario)), seed), instants=True)
    elif absent:
        rounds = np.full(count, scenario.rounds)
        found = Intervals(np.stack([np.arange(count), np.ones_like(rounds), rounds], axis=1), instants=False)
    else:
        return None
    return found._replace(rows=found.rows[~np.isin(found.rows[:, 0], [*absent])]) if absent else found


def horizon(scenario: Scenario) -> float:
    """Return how long a scenario may take in which work outlasts rounds, in seconds."""
    clock = scenario.timeline
    return min(scenario.rounds, clock.slots or scenario.rounds) * (clock.period or 0.0)


def read_trace(
    path: str,  # of the file; a relative one starts at the current folder, as those of data sets do
    clients: int,  # C
    rounds: int,  # N
) -> Trace:
    return _trace(printable(path), _content(path), clients, rounds)


@lru_cache(maxsize=4)
def _trace(path: str, content: bytes, clients: int, rounds: int) -> Trace:
    text = _decoded(path, content)
    instants = text.partition("\n")[0].strip() == ",".join(_INSTANTS)
    columns = _INSTANTS if instants else dict.fromkeys(("client", "from", "to"), _whole)
    places, rows = list[str](), list[list[int]]()
    for where, row in _rows(path, text, columns, f" (or, in seconds, {','.join(_INSTANTS)})"):
        _check_interval(where, row, clients, instants=instants)
        places.append(where)
        rows.append(row)
    intervals = Intervals(np.array(rows, dtype=np.int64).reshape(-1, 3), instants)
    _refuse_overlaps(places, intervals)
    _refuse_absence(path, intervals, clients, rounds)
    return Trace(intervals, hashlib.sha256(content).hexdigest())


def _check_interval(where: str, row: list[int], clients: int, *, instants: bool) -> None:
    client, first, last = row
    if not instants and first < 1:
        raise InputError(f"{where}: from must be at least 1: rounds are counted from 1")
    if last < first + instants:
        begin, end = (f"{at / MICRO:.6f} s" if instants else f"{at}" for at in (first, last))
        raise InputError(f"{where}: the interval from {begin} to {end} is empty")
    if client >= clients:
        raise InputError(f"{where}: unknown client {number(client)}; clients are 0 to {number(clients - 1)}")


def _refuse_overlaps(places: Sequence[str], intervals: Intervals) -> None:
    client, first, last = intervals.rows.T
    order = np.lexsort((last, first, client))
    one, following = order[:-1], order[1:]
    begins_before = first[following] < last[one] + (not intervals.instants)
    if len(found := np.flatnonzero((client[following] == client[one]) & begins_before)):
        at = int(found[0])
        earlier, later = (places[place] for place in sorted((int(one[at]), int(following[at]))))
        raise InputError(f"{later}: overlaps {earlier}, another interval of client {client[one[at]]}")


def _refuse_absence(path: str, intervals: Intervals, clients: int, rounds: int) -> None:
    """Refuse a client without an interval, and a round without a client: either is a trace of another market.

    A client may be there after the last round alone: a run may be shorter than its trace. Where intervals are not in
    rounds, there may be nobody for a while.
    """
    client, first, last = intervals.rows.T
    if len(never := np.setdiff1d(np.arange(clients), client)):
        raise InputError(f"{path}: client {never[0]} is never there; give it an interval, or take it out of the market")
    if intervals.instants:
        return
    there = np.zeros(rounds + 2, dtype=np.int64)
    np.add.at(there, first[first <= rounds], 1)
    np.add.at(there, np.minimum(last[first <= rounds], rounds) + 1, -1)
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
    path: str,
    text: str,
    columns: Mapping[str, Callable[[str, str], Number]],  # what reads a value of each, given its place
    or_else: str = "",  # which others it might have had, for the message
) -> Iterator[tuple[str, list[Number]]]:
    """Yield the rows, each with its place, which is the file and the line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if (found := next(reader, [])) != [*columns]:
            header = printable(",".join(found)[:40])
            raise InputError(f"{path}:1: must have the columns {','.join(columns)}{or_else}, not {header!r}")
        for row in filter(None, reader):
            where = f"{path}:{reader.line_num}"
            if len(row) != len(columns):
                raise InputError(f"{where}: has {len(row)} values, not {len(columns)}")
            cells = zip(columns.items(), row, strict=True)
            yield where, [read(f"{where}: {name}", value) for (name, read), value in cells]
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: is not CSV: {error}") from error


def _whole(where: str, text: str) -> int:
    """Return a number that stands in a file as text."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InputError(f"{where} must be a whole number below a billion, not {printable(text[:20])!r}")
    return int(text)


def _instant(where: str, text: str) -> Microseconds:
    """Return an instant, in seconds, that stands in a file as text."""
    whole, point, part = text.partition(".")
    part = part if point else "0"
    # a pattern takes twice as long, and traces have millions of lines
    if not (text.isascii() and whole.isdigit() and part.isdigit() and len(whole) <= 9 and len(part) <= 6):
        raise InputError(f"{where} must be seconds, with at most six decimals, not {printable(text[:20])!r}")
    return int(whole) * MICRO + int(part.ljust(6, "0"))


_INSTANTS: Mapping[str, Callable[[str, str], int]] = {"client": _whole, "from_second": _instant, "to_second": _instant}
