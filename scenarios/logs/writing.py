"""The three tables of a run and how their values are written: rounds.csv, offers.csv and events.csv.

Money has six decimals, accuracies six, other floats are the shortest text that reads back to the same number, and what
does not apply is empty. The same run writes the same bytes.
"""

import csv
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from des.money import text as money
from des.records import Kind, MarketEvent, OfferReport, RoundReport, ServiceReport
from fl.files import WriteError, write_fully

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


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a table was written.

    Attributes:
        size: in bytes.
        sha256: of these bytes.
    """

    size: int
    sha256: str


class _Table:
    """One table, written without a buffer: what was written is in the file, and nothing else ever will be."""

    def __init__(self, path: Path, mark: Mark | None) -> None:
        self._path = path
        self._hash = hashlib.sha256()
        self._size = 0
        self._file = os.open(path, os.O_RDWR | (0 if mark else os.O_CREAT | os.O_EXCL), 0o666)
        if mark:
            try:
                self._check(mark)
            except BaseException:
                self.close()
                raise

    def write(self, rows: Iterable[Sequence[str]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)  # the same bytes on every system
        content = text.getvalue().encode()
        try:
            write_fully(self._file, content)
        except OSError as error:
            raise WriteError(self._path, error) from error
        self._hash.update(content)
        self._size += len(content)

    def sync(self) -> Mark:
        try:
            os.fsync(self._file)
        except OSError as error:
            raise WriteError(self._path, error) from error
        return Mark(self._size, self._hash.hexdigest())

    def close(self) -> None:
        os.close(self._file)

    def cut(self) -> None:
        """Drop what was written after the mark."""
        os.ftruncate(self._file, self._size)

    def _check(self, mark: Mark) -> None:
        while self._size < mark.size and (block := os.read(self._file, min(1 << 20, mark.size - self._size))):
            self._hash.update(block)
            self._size += len(block)
        if (self._size, self._hash.hexdigest()) != (mark.size, mark.sha256):
            raise ValueError(f"{self._path} is not as it was written")


class TableWriter:
    """Writes a run's tables as it goes: an observer of rounds. Use as a context manager."""

    def __init__(self, directory: Path, marks: Mapping[str, Mark] | None = None) -> None:
        """Open the tables of a run, empty but for their headers, or cut to where the run goes on.

        Args:
            directory: of the run.
            marks: by table, where to go on; without them there are no tables yet.

        Raises:
            ValueError: a table does not hold what it held at its mark.
            FileExistsError: there is a table, and no mark.
            WriteError: the directory can't be written.
        """
        self._tables: dict[str, _Table] = {}
        try:
            for table in TABLES:
                path = directory / f"{table}.csv"
                self._tables[table] = _Table(path, marks[table] if marks else None)
            # Only when all tables are known to be right is any of them changed.
            for table, columns in TABLES.items():
                if marks is None:
                    self._tables[table].write([columns])
                else:
                    self._tables[table].cut()
        except FileExistsError:
            self._close()
            raise
        except OSError as error:
            self._close()
            raise WriteError(path, error) from error
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, report: RoundReport) -> None:
        """Append one round to all tables.

        Raises:
            WriteError: the disk is full; the last round may be there in part.
        """
        for table, rows in ROWS.items():
            self._tables[table].write(rows(report))

    def sync(self) -> dict[str, Mark]:
        """Put the tables onto the disk itself and return how far they are written.

        Raises:
            WriteError: the disk can't take it.
        """
        return {name: table.sync() for name, table in self._tables.items()}

    def _close(self) -> None:
        for table in self._tables.values():
            table.close()


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
