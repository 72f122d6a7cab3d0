"""The three tables of a run and how their values are written: rounds.csv, offers.csv and events.csv.

Money has six decimals, accuracies six, other floats are the shortest text that reads back to the same number, and what
does not apply is empty. The same run writes the same bytes.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Self

from des.money import text as money
from des.records import Kind, MarketEvent, OfferReport, RoundReport, ServiceReport

ROUNDS = (
    "round", "sim_time", "service", "dataset", "policy", "status", "accuracy", "target_accuracy", "reward", "budget",
    "offered", "spent", "wanted", "served", "refused", "samples", "mean_emd", "mean_dqi", "mean_bid", "mean_payment",
    "makespan",
)  # fmt: skip
OFFERS = (
    "round", "service", "client", "data_size", "emd", "dqi", "bid", "payment", "outcome", "core", "start", "end",
)  # fmt: skip
EVENTS = ("round", "sim_time", "event", "service", "client", "core", "amount")

TABLES = {"rounds": ROUNDS, "offers": OFFERS, "events": EVENTS}

_MONEY_EVENTS = {Kind.BID, Kind.DECISION, Kind.AWARD, Kind.PAY}
_ACCURACY_EVENTS = {Kind.EVALUATE, Kind.EXIT}


def round_rows(report: RoundReport) -> Iterator[list[str]]:
    """Yield the rows of rounds.csv for one round: one for every service, also those that have left."""
    for service in report.services:
        yield _round_row(report.round, report.end, service)


def offer_rows(report: RoundReport) -> Iterator[list[str]]:
    """Yield the rows of offers.csv for one round."""
    for offer in report.offers:
        yield _offer_row(offer)


def event_rows(report: RoundReport) -> Iterator[list[str]]:
    """Yield the rows of events.csv for one round."""
    for event in report.events:
        yield _event_row(event)


ROWS: dict[str, Callable[[RoundReport], Iterator[list[str]]]] = {
    "rounds": round_rows,
    "offers": offer_rows,
    "events": event_rows,
}


class TableWriter:
    """Writes a run's tables as it goes: an observer of rounds. Use as a context manager."""

    def __init__(self, directory: Path) -> None:
        """Open the tables in a directory that has none yet.

        Raises:
            OSError: the directory can't be written, or holds tables already.
        """
        self._files: dict[str, IO[str]] = {}
        for table, columns in TABLES.items():
            # newline="" and a fixed terminator: the same bytes on every system.
            self._files[table] = (directory / f"{table}.csv").open("x", encoding="utf-8", newline="")
            self._write(table, [list(columns)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def __call__(self, report: RoundReport) -> None:
        """Append one round to all tables; complete rounds are on disk even if the run is killed."""
        for table, rows in ROWS.items():
            self._write(table, rows(report))
            self._files[table].flush()

    def _write(self, table: str, rows: Any) -> None:
        csv.writer(self._files[table], lineterminator="\n").writerows(rows)


def _round_row(round_: int, end: float, row: ServiceReport) -> list[str]:
    return [
        str(round_), _number(end), row.service, row.dataset, row.policy, row.status.value, _accuracy(row.accuracy),
        _accuracy(row.target_accuracy), _number(row.reward), money(row.budget), money(row.offered), money(row.spent),
        str(row.wanted), str(row.served), str(row.refused), _number(row.samples), _number(row.mean_emd),
        _number(row.mean_dqi), _mean_money(row.mean_bid), _mean_money(row.mean_payment), _number(row.makespan),
    ]  # fmt: skip


def _offer_row(row: OfferReport) -> list[str]:
    return [
        str(row.round), row.service, str(row.client), str(row.data_size), _number(row.emd), _number(row.dqi),
        money(row.bid), money(row.payment), row.outcome.value, _number(row.core), _number(row.start), _number(row.end),
    ]  # fmt: skip


def _event_row(row: MarketEvent) -> list[str]:
    if row.amount is None:
        amount = ""
    elif row.event in _MONEY_EVENTS:
        amount = money(int(row.amount))
    elif row.event in _ACCURACY_EVENTS:
        amount = _accuracy(row.amount)
    else:
        amount = _number(row.amount)
    return [
        str(row.round), _number(row.sim_time), row.event.value, row.service or "", _number(row.client),
        _number(row.core), amount,
    ]  # fmt: skip


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _accuracy(value: float) -> str:
    return f"{value:.6f}"


def _mean_money(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
