"""The parts of a table: types, columns, and the conversion of rows to text and back.

The tables themselves are declared in ``scenarios.logs.columns``.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from des.log_records import RoundReport
from des.money import Micro
from des.money import text as six_decimals
from flmarket.core.errors import InputError


class TableError(InputError):
    """A file does not have the columns of its table; says which file, and what to do."""


@dataclass(frozen=True, slots=True)
class Type:
    """The text form of a value, written and read back."""

    name: str  # in the reference
    form: str  # how the text looks, in words
    # what data frames and Parquet files hold it as; data frames hold int64 that may be empty as float64
    dtype: Literal["int64", "float64", "string"]
    # from the text to the value; raises ValueError where the text is something else
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str  # from the value to the text. ``str`` is what the csv module does by itself
    exact: bool = False  # whether values are whole millionths of a unit


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str  # in the header
    type: Type  # of its values
    meaning: str  # one sentence
    rule: str  # the rule of ``flmarket.analysis.verification.verify`` that re-derives it, or ``RERUN``
    unit: str = ""  # of its values
    # when there is no value; the text is empty then, and the value None. By default there is always one.
    empty: str = ""
    # another column and what this one holds for each of its values; for others it is empty
    by: "tuple[str, Mapping[Any, Column]] | None" = None

    def read(self, text: str) -> Any:
        """Return the value that a text stands for."""
        if self.empty and not text:
            return None
        return self.type.read(text)

    def write(self, value: Any) -> str:
        return "" if value is None else self.type.write(value)


class Table:
    """One table of a run.

    Attributes:
        name: of its file, without ``.csv``.
        row: what one row stands for.
        columns: in the order of the file.
    """

    def __init__(
        self,
        name: str,
        row: str,
        columns: Sequence[Column],
        values: Callable[[RoundReport], Iterable[Iterable[object]]],
    ) -> None:
        """Declare a table; ``values`` returns a round's rows, each with one value for each column."""
        self.name, self.row, self.columns = name, row, tuple(columns)
        self.names = tuple(column.name for column in columns)  # of the columns
        self.header = ",".join(self.names) + "\n"  # the first line, with its end
        self._values = values
        # Tables are written and read in every round, thousands of times a second: what each column needs is looked up
        # once, here.
        plain = [(n, column) for n, column in enumerate(columns) if column.by is None]
        self._writers = [(n, column.type.write) for n, column in plain if column.type.write is not str]
        full = [(n, column) for n, column in plain if not column.empty]
        self._readers = [(n, column.type.read) for n, column in full if column.type.read is not str]
        self._maybe = [(n, column.type.read) for n, column in plain if column.empty]
        self._by = [(n, self.names.index(column.by[0]), column.by[1]) for n, column in enumerate(columns) if column.by]

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    def path(self, directory: Path) -> Path:
        """Return where the table is in a run's directory."""
        return directory / f"{self.name}.csv"

    def text(self, report: RoundReport) -> str:
        """Return a round's lines."""
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(self._rows(report))  # the same bytes on every system
        return buffer.getvalue()

    def read(self, text: str) -> Iterator[list[Any]]:
        """Yield the values of each line of a text, one for each column."""
        readers, maybe, by, length = self._readers, self._maybe, self._by, len(self.columns)
        row: Any
        for row in csv.reader(io.StringIO(text)):
            if len(row) != length:
                raise ValueError(f"{len(row)} values in a line of {self.name}.csv, not {length}")
            for place, read in readers:
                row[place] = read(row[place])
            for place, read in maybe:
                row[place] = read(value) if (value := row[place]) else None
            for place, key, cases in by:
                row[place] = cases[row[key]].type.read(value) if (value := row[place]) else None
            yield row

    def check(self, directory: Path) -> Path:
        """Return where the table is in a run's directory, after a look at its first line."""
        path = self.path(directory)
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            self.check_header(file.readline().rstrip("\n").split(","), path)
        return path

    def check_header(self, header: Sequence[str], path: Path) -> None:
        """Raise TableError if a file's first line is not this table's."""
        if tuple(header) != self.names:
            raise TableError(
                f"{path}: does not have the columns of {self.name}.csv (docs/logs.md); "
                "start the run over with the option fresh"
            )

    def _rows(self, report: RoundReport) -> Iterator[list[object]]:
        for values in self._values(report):
            row = list(values)
            for place, write in self._writers:
                if row[place] is not None:
                    row[place] = write(row[place])
            for place, key, cases in self._by:
                if row[place] is not None:
                    row[place] = cases[row[key]].type.write(row[place])
            yield row


def micro(text: str) -> Micro:
    """Read an amount of money, or a time, with its six decimals, exactly."""
    if text[-7:-6] != ".":
        raise ValueError(f"{text!r} is not a number with six decimals")
    return int(text.replace(".", "", 1))


def _six_decimals(value: float) -> str:
    return f"{value:.6f}"


class _Words(dict[str, StrEnum]):
    def __missing__(self, text: str) -> StrEnum:
        raise ValueError(f"unknown word {text!r}")


def one_of(words: type[StrEnum]) -> Type:
    """Return the type whose values are an enumeration's."""
    known = _Words({word.value: word for word in words})
    return Type(", ".join(f"`{word}`" for word in words), "as it is", "string", known.__getitem__)


WORD = Type("word", "as it is", "string", str)
INTEGER = Type("integer", "digits", "int64", int)
NUMBER = Type("number", "the shortest text that reads back to the same 64-bit number", "float64", float)
MONEY = Type(
    "money", "exactly six decimals, in the scenario's unit of money", "float64", micro, six_decimals, exact=True
)
# Most events share an instant with others.
_shared = lru_cache(maxsize=256)
TIME = Type("time", "exactly six decimals", "float64", _shared(micro), _shared(six_decimals), exact=True)
QUANTITY = Type("quantity", "exactly six decimals, from 0 to 1", "float64", micro, six_decimals, exact=True)
MEAN_MONEY = Type(
    "mean money", "rounded to six decimals, in the scenario's unit of money", "float64", float, _six_decimals
)
ACCURACY = Type("accuracy", "correct / tested, rounded to six decimals", "float64", float, _six_decimals)

TYPES = (WORD, INTEGER, NUMBER, MONEY, TIME, QUANTITY, MEAN_MONEY, ACCURACY)
"""All types but those whose values are listed by name (``one_of``)."""
