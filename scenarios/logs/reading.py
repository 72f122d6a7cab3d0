"""A run's tables, read back: from the text of the CSV files to the records that they were written from.

The inverse of ``scenarios.logs.writing``.
"""

import csv
import io
import os
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from math import isfinite, nan
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from des.clock import Microseconds
from des.log_records import MarketEvent, ModelReport, OfferReport, ServiceReport
from des.observation import Status
from fl.arrays import AnyArray
from flmarket.core.errors import InputError, shortened
from scenarios.logs.columns import ALL_TABLES, EVENTS, MODELS, OFFERS, ROUNDS, tables_in
from scenarios.logs.table import Table, micro

_Record = TypeVar("_Record", OfferReport, MarketEvent, ModelReport)


FIGURES = (
    "accuracy", "test_accuracy", "reward", "offered", "spent", "wanted", "served", "refused", "mean_payment", "budget",
    "sim_time",
)  # fmt: skip
"""Columns of rounds.csv that are looked at for many rounds at once."""

STALENESS = "staleness"
"""What is looked at besides where work outlasts rounds: the mean of the updates in the models of a round."""

_PLACES = tuple(map(ROUNDS.names.index, FIGURES))
_STATUS, _REFUSED = ROUNDS.names.index("status"), ROUNDS.names.index("refused")
_LEAVING = [status for status in Status if status.leaves]

_ROUND = re.compile(rb"^(\d+),.*\n(?:\1,.*\n)*", re.MULTILINE)
"""The lines of one round: all that begin with the same number."""

_TAIL = 16_384  # bytes at the end of a table in which its last round is looked for first

_PIECE = 1024  # bytes of a table in which one of its rounds is looked for

_LARGEST = 2.0**63  # of what screens count and draw: within 64 bits, as flmarket's numbers are


class LogError(ValueError):
    """A text is not a round of the tables."""


@dataclass(frozen=True, eq=False)
class LoggedRound:
    """One round, as the tables hold it.

    Services, offers and events are kept as text, which is small, and read when they are looked at; text that is
    something else is a LogError then.
    """

    number: int  # the round, from 1
    end: Microseconds  # simulated time at which it ended
    exits: bool  # whether a service leaves
    conflicts: bool  # whether an offer was outbid or dropped
    # what curves and totals are made of, [len(FIGURES), M], with a row for STALENESS where work outlasts rounds; NaN
    # where there is no value, money in units
    figures: NDArray[np.float64]
    text: Mapping[str, str]  # the round's lines of each table, by its name

    @classmethod
    def read(cls, text: Mapping[str, str]) -> "LoggedRound":
        """Return a round from its lines of the tables."""
        logged = cls.glance(text)
        logged._services()
        return logged

    @classmethod
    def glance(cls, text: Mapping[str, str]) -> "LoggedRound":
        """Return a round from its lines of the tables, most of which are read when they are looked at."""
        try:
            rows = list(csv.reader(io.StringIO(text["rounds"])))
            return cls(
                number=int(rows[0][0]),
                end=micro(rows[0][1]),
                exits=any(row[_STATUS] in _LEAVING for row in rows),
                conflicts=any(row[_REFUSED] != "0" for row in rows),
                figures=np.array([_figures(row) + _staleness(row[2], text) for row in rows]).T,
                text=text,
            )
        except (KeyError, ValueError, IndexError, TypeError, AttributeError, csv.Error) as error:
            raise LogError(f"not a round of rounds.csv: {shortened(error)}") from error

    @cached_property
    def services(self) -> tuple[ServiceReport, ...]:
        return self._services()

    def _services(self) -> tuple[ServiceReport, ...]:
        try:
            return tuple(ServiceReport._make(row[2:]) for row in ROUNDS.read(self.text["rounds"]))
        except (KeyError, ValueError, TypeError, csv.Error) as error:
            raise LogError(f"not a round of rounds.csv: {shortened(error)}") from error

    @property
    def offers(self) -> tuple[OfferReport, ...]:
        return _offers(self.text["offers"])

    def check(self, services: Sequence[str], clients: int) -> None:
        """Check that the round can be shown: its services and clients are the scenario's, all numbers are finite."""
        if tuple(row.service for row in self.services) != tuple(services):
            raise LogError(f"round {self.number}: rounds.csv does not have one row for each service, in order")
        places = [(row.service, row.client) for row in self.offers]
        places += [(row.service or services[0], row.client or 0) for row in self.events]
        places += [(row.service, 0) for row in self.models]
        for service, client in places:
            if service not in services:
                raise LogError(f"round {self.number}: unknown service {service[:40]!r}")
            if not 0 <= client < clients:
                raise LogError(f"round {self.number}: unknown client; clients are 0 to {clients - 1}")
        for value in chain((self.end,), *self.services, *self.offers, *self.events, *self.models):
            if isinstance(value, (int, float)) and not (isfinite(value) and abs(value) <= _LARGEST):
                raise LogError(f"round {self.number}: a number is not finite, or is too large")

    @property
    def events(self) -> tuple[MarketEvent, ...]:
        return _events(self.text["events"])

    @property
    def goes_on(self) -> bool:
        """Whether work may outlast the round."""
        return MODELS.name in self.text

    @property
    def models(self) -> tuple[ModelReport, ...]:
        """The models that were made in it, where work outlasts rounds."""
        return _models(self.text.get(MODELS.name, ""))

    @property
    def outlasting(self) -> tuple[OfferReport, ...]:
        """The offers whose clients are still at work when it ends."""
        begun = "".join(line for line in self.text["offers"].splitlines(keepends=True) if line[-2:] != ",\n")
        return tuple(job for job in _records(OFFERS, OfferReport, begun) if job.end is not None and job.end > self.end)


Spans = Mapping[str, tuple[int, int]]  # of each table: the first byte of a round, and the byte after its last


class StoredRounds:
    """The places of a run's rounds in its files: 16 bytes for each round and table."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tables: tuple[str, ...] = ()
        self._spans = array("q")

    def add(self, spans: Spans) -> None:
        """Add the place of the next round."""
        self._tables = self._tables or tuple(spans)
        for table in self._tables:
            self._spans.extend(spans[table])

    def add_text(self, text: Mapping[str, str]) -> None:
        """Add the place that the next round has, or will have, directly after the one before it."""
        before = self.spans(self.count) if self.count else {}
        spans = {}
        for table, lines in text.items():
            start = before[table][1] if before else len(ALL_TABLES[table].header.encode())
            spans[table] = start, start + len(lines.encode())
        self.add(spans)

    @property
    def count(self) -> int:
        return len(self._spans) // (2 * len(self._tables)) if self._tables else 0

    def spans(self, number: int) -> dict[str, tuple[int, int]]:
        """Return the place of a round."""
        first = 2 * len(self._tables) * (number - 1)
        return {
            table: (self._spans[first + 2 * place], self._spans[first + 2 * place + 1])
            for place, table in enumerate(self._tables)
        }

    def written(self, number: int) -> bool:
        """Whether the files hold a round."""
        try:
            return all(self._path(table).stat().st_size >= stop for table, (_, stop) in self.spans(number).items())
        except OSError:
            return False

    def read(self, number: int) -> dict[str, str]:
        """Return a round's lines of each table; raise LogError if the files do not have them."""
        return {table: self._read(table, *span) for table, span in self.spans(number).items()}

    def _read(self, table: str, start: int, stop: int) -> str:
        path = self._path(table)
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                content = os.pread(descriptor, stop - start, start)
            finally:
                os.close(descriptor)
            if len(content) < stop - start:
                raise LogError(f"{path.name}: has become shorter since the run was read")
            return content.decode()
        except OSError as error:
            raise LogError(f"{path.name}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise LogError(f"{path.name}: is not UTF-8 text") from error

    def _path(self, table: str) -> Path:
        return ALL_TABLES[table].path(self._directory)


class RunReader:
    """Reads the tables of a run's directory, of which others may still be written; ``log_frames`` has data frames."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read_up_to: dict[str, int] = {}  # bytes of each table that ``grow`` has read
        self._rest: dict[str, bytes] = {}  # what it has read of each table, and belongs to no whole round yet

    def last(self) -> tuple[int, tuple[ServiceReport, ...]]:
        """Return the newest round and its services, without reading the rest."""
        table = ROUNDS.path(self._directory)
        if not table.exists():
            return 0, ()
        with table.open("rb") as file:
            lines = _last_round(file)
        if not lines or lines[-1].startswith("round,"):
            return 0, ()
        number = lines[-1].partition(",")[0]
        if not (number.isascii() and number.isdigit()):
            raise LogError(f"{ROUNDS.name}.csv: {number[:20]!r} is no round")
        newest = "".join(f"{line}\n" for line in lines if line.startswith(f"{number},"))
        return int(number), LoggedRound.read({"rounds": newest, "offers": "", "events": ""}).services

    def some(self, most: int) -> list[LoggedRound]:
        """Return whole rounds from the first to the newest, about so many, without reading the rest."""
        table = ROUNDS.path(self._directory)
        if not table.exists():
            return []
        found: dict[bytes, bytes] = {}
        with table.open("rb") as file:
            newest = "\n".join(_last_round(file)).encode()
            size = file.seek(0, 2)
            last = [*_ROUND.finditer(newest + b"\n")][-1:]
            length = max(_PIECE, 3 * sum(len(one[0]) for one in last))
            for start in range(0, size, max(1, size // most)):
                file.seek(start)
                piece = file.read(length)
                # Its first line, then the first round and the last may be cut.
                rounds = [*_ROUND.finditer(piece.partition(b"\n")[2] if start else piece)][start > 0 : -1]
                found |= {one[1]: one[0] for one in rounds[:1]}
            found |= {one[1]: one[0] for one in last}
        texts = ({"rounds": text.decode("utf-8", "replace"), "offers": "", "events": ""} for text in found.values())
        read = [LoggedRound.glance(text) for text in texts]
        return [one for one in read if one.figures.shape == read[0].figures.shape]  # the newest may not be whole yet

    def whole(self) -> Iterator[tuple[dict[str, str], Spans]]:
        """Yield the lines in the small tables, and the place in all, of all rounds; the last must be whole."""
        contents = {
            name: table.check(self._directory).read_bytes() for name, table in tables_in(self._directory).items()
        }
        spans = {name: round_spans(content) for name, content in contents.items()}
        contents = {name: content for name, content in contents.items() if name in {ROUNDS.name, MODELS.name}}
        for number in spans[ROUNDS.name]:
            places = {table: found.get(number, (0, 0)) for table, found in spans.items()}
            yield {name: content[slice(*places[name])].decode() for name, content in contents.items()}, places

    def grow(self, services: int, *, rounds_only: bool = False) -> Iterator[dict[str, str]]:
        """Yield the lines of each table of each round of so many services that is whole and new since the last call.

        A run that is started over meanwhile plays the same rounds again: the same seed gives the same bytes. So what
        counts is how much of each table has been read, not which file it was read from.
        """
        self._read(ROUNDS)  # first, because it is written last: what it has is in all tables
        whole = {
            number: span
            for number, span in round_spans(self._rest.get(ROUNDS.name, b"")).items()
            if self._rest[ROUNDS.name].count(b"\n", *span) >= services
        }
        if not whole:
            return
        tables = {ROUNDS.name: ROUNDS} if rounds_only else tables_in(self._directory)
        for table in tables.values():
            if table is not ROUNDS:
                self._read(table)
        contents = {name: self._rest.get(name, b"") for name in tables}
        spans = {name: round_spans(content) for name, content in contents.items() if name != ROUNDS.name}
        spans[ROUNDS.name] = whole
        for name, found in spans.items():
            self._rest[name] = contents[name][max((found[it][1] for it in whole if it in found), default=0) :]
        for number in whole:
            yield {name: contents[name][slice(*spans[name].get(number, (0, 0)))].decode() for name in tables}

    def _read(self, table: Table) -> None:
        path = table.path(self._directory)
        try:
            with path.open("rb") as file:
                file.seek(self._read_up_to.get(table.name, 0))
                content = file.read()
                end = file.tell()
        except FileNotFoundError:  # the run has not begun, or is being started over
            return
        if table.name not in self._rest:
            header, found, content = content.partition(b"\n")
            if not found:
                return
            table.check_header(header.decode("utf-8", "replace").split(","), path)
        self._read_up_to[table.name] = end
        self._rest[table.name] = self._rest.get(table.name, b"") + content

    def arrays(self) -> dict[str, AnyArray]:
        """Return rounds.csv by columns. Not as a frame: pandas takes long to import, and to read so few lines."""
        found: dict[str, AnyArray] = {}
        try:
            text = ROUNDS.check(self._directory).read_bytes().decode()
            if not text.replace("\n", "").isprintable():
                raise ValueError("a line has control characters")  # noqa: TRY301 - as the reader does
            rows = list(ROUNDS.read(text.removeprefix(ROUNDS.header)))
            for place, column in enumerate(ROUNDS.columns):
                dtype = object if column.empty or column.type.dtype == "string" else column.type.dtype
                found[column.name] = np.array([row[place] for row in rows], dtype)
        except (OSError, ValueError, OverflowError, csv.Error) as error:
            raise InputError(f"{ROUNDS.path(self._directory)}: cannot be read: {shortened(error)}") from error
        return found


def _last_round(file: IO[bytes]) -> list[str]:
    """Return the whole lines at the end of a table, back to before its last round or to its beginning."""
    end, length = file.seek(0, 2), _TAIL
    while True:
        file.seek(max(0, end - length))
        lines = file.read(length).decode("utf-8", "replace").split("\n")[:-1]
        number = lines[-1].partition(",")[0] if lines else ""
        if length >= end or any(not line.startswith(f"{number},") for line in lines[1:]):
            return lines
        length *= 8


def round_spans(content: bytes) -> dict[bytes, tuple[int, int]]:
    """Return where each round is in the content of a table: its first byte, and the byte after its last."""
    return {found[1]: found.span() for found in _ROUND.finditer(content)}


def _figures(row: Sequence[str]) -> list[float]:
    return [float(row[place] or "nan") for place in _PLACES]


def _staleness(service: str, text: Mapping[str, str]) -> list[float]:
    """Return the mean staleness of the updates in a service's models of a round, where there are any."""
    if MODELS.name not in text:
        return []
    made = [(it.updates, it.updates * it.mean_staleness) for it in _models(text[MODELS.name]) if it.service == service]
    updates, staleness = map(sum, zip(*made, strict=True)) if made else (0, 0.0)
    return [staleness / updates if updates else nan]


# Screens look at the same few rounds again and again.
@lru_cache(maxsize=64)
def _offers(text: str) -> tuple[OfferReport, ...]:
    return _records(OFFERS, OfferReport, text)


@lru_cache(maxsize=64)
def _events(text: str) -> tuple[MarketEvent, ...]:
    return _records(EVENTS, MarketEvent, text)


@lru_cache(maxsize=64)
def _models(text: str) -> tuple[ModelReport, ...]:
    return _records(MODELS, ModelReport, text)


def _records(table: Table, record: type[_Record], text: str) -> tuple[_Record, ...]:
    try:
        return tuple(record._make(row) for row in table.read(text))
    except (KeyError, ValueError, csv.Error) as error:
        raise LogError(f"not a round of {table.name}.csv: {shortened(error)}") from error
