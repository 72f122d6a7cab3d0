"""A run's tables, read back: from the text of the three CSV files to the records that they were written from.

The inverse of ``scenarios.logs.writing``. A screen that watches a run gets the same text through a pipe that replay
reads from the files, so both go through here.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from des.money import Micro
from des.records import Kind, MarketEvent, OfferReport, Outcome, RoundReport, ServiceReport, Status
from scenarios.logs.writing import ROWS

_T = TypeVar("_T")
_MONEY = {Kind.BID, Kind.DECISION, Kind.AWARD, Kind.PAY}


class LogError(ValueError):
    """A text is not a round's part of our tables."""


@dataclass(frozen=True, slots=True)
class LoggedRound:
    """One round as the tables have it.

    Offers and events are kept as text, which is small, and read when they are looked at.

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
            rows = list(csv.reader(io.StringIO(text["rounds"])))
            services = tuple(_service(row[2:]) for row in rows)
            number, end = int(rows[0][0]), float(rows[0][1])
            return cls(number, end, services, {table: text[table] for table in ROWS})
        except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
            raise LogError(f"not a round of our tables: {error!r}") from error

    @property
    def offers(self) -> tuple[OfferReport, ...]:
        """All offers of the round."""
        return _offers(self.text["offers"])

    @property
    def events(self) -> tuple[MarketEvent, ...]:
        """The round's timeline."""
        return _events(self.text["events"])


def round_text(report: RoundReport) -> dict[str, str]:
    """Return a round's lines of each table, as the files get them."""
    found = {}
    for table, rows in ROWS.items():
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(rows(report))
        found[table] = buffer.getvalue()
    return found


def rounds_text(directory: Path) -> Iterator[dict[str, str]]:
    """Yield the lines of each round in a run directory whose last round is whole, as ``round_text`` returns them.

    Raises:
        OSError: a table can't be read.
    """
    tables = {table: _by_round(directory / f"{table}.csv") for table in ROWS}
    for number in tables["rounds"]:
        yield {table: lines.get(number, "") for table, lines in tables.items()}


def _by_round(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as file:
        next(file)  # the header
        return {number: "".join(lines) for number, lines in groupby(file, lambda line: line.partition(",")[0])}


def _service(row: list[str]) -> ServiceReport:
    service, dataset, policy, status, accuracy, target, reward, budget, offered, spent, wanted, served, refused = row[
        :13
    ]
    samples, emd, dqi, bid, payment, makespan = row[13:]
    return ServiceReport(
        service, dataset, policy, Status(status), float(accuracy), float(target), float(reward), micro(budget),
        micro(offered), micro(spent), int(wanted), int(served), int(refused), _maybe(int, samples), _maybe(float, emd),
        _maybe(float, dqi), _maybe(float, bid), _maybe(float, payment), _maybe(float, makespan),
    )  # fmt: skip


# Screens look at the same few rounds again and again.
@lru_cache(maxsize=64)
def _offers(text: str) -> tuple[OfferReport, ...]:
    return tuple(map(_offer, _rows(text)))


@lru_cache(maxsize=64)
def _events(text: str) -> tuple[MarketEvent, ...]:
    return tuple(map(_event, _rows(text)))


def _rows(text: str) -> Iterable[list[str]]:
    return csv.reader(io.StringIO(text))


def _offer(row: list[str]) -> OfferReport:
    round_, service, client, size, emd, dqi, bid, payment, outcome, core, start, end = row
    paid = micro(payment) if outcome == Outcome.SERVED else None
    return OfferReport(
        int(round_), service, int(client), int(size), float(emd), float(dqi), micro(bid), micro(payment), paid,
        Outcome(outcome), _maybe(int, core), _maybe(float, start), _maybe(float, end),
    )  # fmt: skip


def _event(row: list[str]) -> MarketEvent:
    round_, time, event, service, client, core, amount = row
    kind = Kind(event)
    return MarketEvent(
        int(round_),
        float(time),
        kind,
        service or None,
        _maybe(int, client),
        _maybe(int, core),
        _maybe(micro if kind in _MONEY else float, amount),
    )


def micro(text: str) -> Micro:
    """Read an amount of money with its six decimals, exactly."""
    units, _, decimals = text.partition(".")
    if len(decimals) != 6:
        raise ValueError(f"{text!r} is not an amount with six decimals")
    return int(units + decimals)


def _maybe(read: Callable[[str], _T], text: str) -> _T | None:
    return read(text) if text else None
