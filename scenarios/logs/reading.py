"""A run's tables, read back: from the text of the CSV files to the records that they were written from.

The inverse of ``scenarios.logs.writing``.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from des.clock import Microseconds
from des.log_records import MarketEvent, OfferReport, ServiceReport
from des.observation import Status
from flmarket.core.errors import shortened
from scenarios.logs.columns import EVENTS, OFFERS, ROUNDS
from scenarios.logs.table import Table, micro

_Record = TypeVar("_Record", OfferReport, MarketEvent)


FIGURES = (
    "accuracy", "test_accuracy", "reward", "offered", "spent", "wanted", "served", "refused", "mean_payment", "budget",
)  # fmt: skip
"""Columns of rounds.csv that are looked at for many rounds at once."""

_PLACES = tuple(map(ROUNDS.names.index, FIGURES))
_STATUS, _REFUSED = ROUNDS.names.index("status"), ROUNDS.names.index("refused")

_ROUND = re.compile(rb"^(\d+),.*\n(?:\1,.*\n)*", re.MULTILINE)
"""The lines of one round: all that begin with the same number."""

_TAIL = 16_384  # bytes at the end of a table in which its last round is looked for first

_PIECE = 1024  # bytes of a table in which one of its rounds is looked for

_LARGEST = 2.0**63  # of what screens count and draw: within 64 bits, as flmarket's numbers are


class LogError(ValueError):
    """A text is not a round of the three tables."""


@dataclass(frozen=True, eq=False)
class LoggedRound:
    """One round, as the tables hold it.

    Services, offers and events are kept as text, which is small, and read when they are looked at; text that is
    something else is a LogError then.
    """

    number: int  # the round, from 1
    end: Microseconds  # simulated time at which it ended
    exits: bool  # whether a service met its target
    conflicts: bool  # whether an offer was outbid or dropped
    # what curves and totals are made of, [len(FIGURES), M]; NaN where there is no value, money in units
    figures: NDArray[np.float64]
    text: Mapping[str, str]  # the round's lines of each table, by its name

    @classmethod
    def read(cls, text: Mapping[str, str]) -> "LoggedRound":
        """Return a round from its lines of the three tables."""
        logged = cls.glance(text)
        logged._services()
        return logged

    @classmethod
    def glance(cls, text: Mapping[str, str]) -> "LoggedRound":
        """Return a round from its lines of the three tables, most of which are read when they are looked at."""
        try:
            rows = list(csv.reader(io.StringIO(text["rounds"])))
            return cls(
                number=int(rows[0][0]),
                end=micro(rows[0][1]),
                exits=any(row[_STATUS] == Status.REACHED for row in rows),
                conflicts=any(row[_REFUSED] != "0" for row in rows),
                figures=np.array([_figures(row) for row in rows]).T,
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
        for service, client in places:
            if service not in services:
                raise LogError(f"round {self.number}: unknown service {service[:40]!r}")
            if not 0 <= client < clients:
                raise LogError(f"round {self.number}: unknown client; clients are 0 to {clients - 1}")
        for value in chain((self.end,), *self.services, *self.offers, *self.events):
            if isinstance(value, (int, float)) and not (isfinite(value) and abs(value) <= _LARGEST):
                raise LogError(f"round {self.number}: a number is not finite, or is too large")

    @property
    def events(self) -> tuple[MarketEvent, ...]:
        return _events(self.text["events"])


def last_services(path: Path) -> tuple[int, tuple[ServiceReport, ...]]:
    """Return the newest round of a run directory and its services, without reading the rest."""
    table = ROUNDS.path(path)
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


def some_rounds(path: Path, most: int) -> list[LoggedRound]:
    """Return whole rounds of a run directory from the first to the newest, about so many, without reading the rest."""
    table = ROUNDS.path(path)
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


# Screens look at the same few rounds again and again.
@lru_cache(maxsize=64)
def _offers(text: str) -> tuple[OfferReport, ...]:
    return _records(OFFERS, OfferReport, text)


@lru_cache(maxsize=64)
def _events(text: str) -> tuple[MarketEvent, ...]:
    return _records(EVENTS, MarketEvent, text)


def _records(table: Table, record: type[_Record], text: str) -> tuple[_Record, ...]:
    try:
        return tuple(record._make(row) for row in table.read(text))
    except (KeyError, ValueError, csv.Error) as error:
        raise LogError(f"not a round of {table.name}.csv: {shortened(error)}") from error
