"""A run's tables, read back: from the text of the three CSV files to the records that they were written from.

The inverse of ``scenarios.logs.writing``. A screen that watches a run gets through a pipe the same text that replay
reads from the files, so both go through here.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from des.records import MarketEvent, OfferReport, ServiceReport
from fl.files import reading_own
from scenarios.logs.columns import EVENTS, OFFERS, ROUNDS, TABLES
from scenarios.logs.table import Table

_Record = TypeVar("_Record", OfferReport, MarketEvent)


class LogError(ValueError):
    """A text is not a round of the three tables."""


@dataclass(frozen=True, slots=True)
class LoggedRound:
    """One round, as the tables hold it.

    Offers and events are kept as text, which is small, and read when they are looked at; text that is something else is
    a LogError then.

    Attributes:
        number: the round, from 1.
        end: simulated time at which it ended, seconds.
        services: one report for each service.
        text: the round's lines of each table, by its name.
    """

    number: int
    end: float
    services: tuple[ServiceReport, ...]
    text: Mapping[str, str]

    @classmethod
    def read(cls, text: Mapping[str, str]) -> "LoggedRound":
        """Return a round from its lines of the three tables.

        Raises:
            LogError: the text is something else.
        """
        try:
            rows = list(ROUNDS.read(text["rounds"]))
            number, end = rows[0][:2]
            services = tuple(ServiceReport._make(row[2:]) for row in rows)
            return cls(number, end, services, {table: text[table] for table in TABLES})
        except (KeyError, ValueError, IndexError, TypeError, AttributeError, csv.Error) as error:
            raise LogError(f"not a round of rounds.csv: {error!r}") from error

    @property
    def offers(self) -> tuple[OfferReport, ...]:
        """All offers of the round."""
        return _offers(self.text["offers"])

    @property
    def events(self) -> tuple[MarketEvent, ...]:
        """The round's timeline."""
        return _events(self.text["events"])


def rounds_text(directory: Path) -> Iterator[dict[str, str]]:
    """Yield the lines of each round in a run directory whose last round is whole, as ``round_text`` returns them.

    Raises:
        OSError: a table cannot be read.
    """
    tables = {name: _by_round(table.path(directory)) for name, table in TABLES.items()}
    for number in tables["rounds"]:
        yield {table: lines.get(number, "") for table, lines in tables.items()}


def _by_round(path: Path) -> dict[str, str]:
    with reading_own(path) as file:
        next(file)  # the header
        return {number: "".join(lines) for number, lines in groupby(file, lambda line: line.partition(",")[0])}


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
        raise LogError(f"not a round of {table.name}.csv: {error!r}") from error
