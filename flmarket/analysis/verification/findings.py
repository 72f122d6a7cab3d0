"""Lines of a run's tables as arrays, and the findings in them: where a value is wrong, and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from des.money import text as money
from fl.arrays import AnyArray, BoolArray, IntArray
from scenarios.logs.columns import ALL_TABLES
from scenarios.logs.table import INTEGER, MONEY

_COLUMNS = [column for table in ALL_TABLES.values() for column in table.columns]
_MONEY = {column.name for column in _COLUMNS if column.type is MONEY}
_WHOLE = {column.name for column in _COLUMNS if column.type is INTEGER}


class Finding(NamedTuple):
    """Something that is wrong with a run."""

    file: str
    line: int | None  # of the file, from 1; None where it is about no single line
    sentence: str

    def __str__(self) -> str:
        return self.sentence if self.line is None else f"{self.file}, line {self.line}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Lines of one table: an array for each column, with money in micro-units and NaN where there is no value."""

    table: str
    columns: Mapping[str, AnyArray]
    line: IntArray  # of each row in the file, from 1

    @classmethod
    def of(cls, table: str, frame: pd.DataFrame) -> "Rows":
        return cls(table, {str(name): frame[name].to_numpy() for name in frame}, np.arange(2, len(frame) + 2))

    def __getitem__(self, name: str) -> AnyArray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.line)

    def having(self, **columns: AnyArray) -> "Rows":
        """Return the rows with other columns, besides or in place of their own."""
        return Rows(self.table, {**self.columns, **columns}, self.line)

    def has(self, name: str, *values: str) -> BoolArray:
        """Return for each row whether a column holds one of some words."""
        found: BoolArray = np.logical_or.reduce([self.columns[name] == value for value in values])
        return found

    def where(self, which: AnyArray | slice) -> "Rows":
        """Return some of the rows, by a mask, their places or a slice."""
        return Rows(self.table, {name: values[which] for name, values in self.columns.items()}, self.line[which])

    def wrong(self, which: BoolArray, what: str) -> Iterator[Finding]:
        """Yield a finding for each row of a mask; ``what`` may name columns: ``{bid}``."""
        for at in np.flatnonzero(which).tolist():
            values = {name: shown(name, values[at]) for name, values in self.columns.items()}
            yield self._finding(at, what.format_map(values))

    def differing(self, wanted: Mapping[str, AnyArray], source: str) -> Iterator[Finding]:
        """Yield a finding for each value that is not the one wanted."""
        for name, right in wanted.items():
            found = self.columns[name]
            for at in np.flatnonzero(unequal(found, right)).tolist():
                yield self._finding(at, f"{name} is {shown(name, found[at])}, but {source} {shown(name, right[at])}")

    def _finding(self, at: int, sentence: str) -> Finding:
        row = {name: values[at] for name, values in self.columns.items()}
        place = f"round {row['round']}"
        if row["service"] == row["service"]:
            place += f", {row['service']}"
        if row.get("client", np.nan) == row.get("client", np.nan):
            place += f", client {row['client']:.0f}"
        return Finding(f"{self.table}.csv", int(self.line[at]), f"{place}: {sentence}")


def unequal(one: AnyArray, other: AnyArray) -> BoolArray:
    """Return where two columns differ; NaN stands for nothing, and equals itself."""
    different: BoolArray = (one != other) & ~((one != one) & (other != other))
    return different


def shown(name: str, value: Any) -> str:
    """Return a value of a column as a message shows it."""
    if value != value:
        return "nothing"
    if name in _MONEY:
        return money(round(value))
    return f"{value:.0f}" if name in _WHOLE else str(value)
