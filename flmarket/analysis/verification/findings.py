"""Lines of a run's tables as arrays, and the findings in them: where a value is wrong, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from fl.arrays import AnyArray, BoolArray
from flmarket.analysis.log_frames import value_text
from scenarios.logs.columns import ALL_TABLES


class Finding(NamedTuple):
    """Something that is wrong with a run."""

    sentence: str
    table: str = ""
    line: int | None = None  # of the table's file, from 1; None where it is about no single line
    first_of: str = ""  # of findings in a run that have the same here, the first alone is told

    def __str__(self) -> str:
        return self.sentence if self.line is None else f"{self.table}.csv, line {self.line}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Lines of one table: a frame's columns as arrays, on which expressions take a tenth of the time."""

    table: str
    columns: Mapping[str, AnyArray]  # with ``line``, of each row in the file, from 1

    @classmethod
    def of(cls, table: str, frame: pd.DataFrame) -> "Rows":
        columns = {str(name): frame[name].to_numpy() for name in frame}
        return cls(table, {**columns, "line": frame.index.to_numpy() + 2})

    def __getitem__(self, name: str) -> AnyArray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["round"])

    def having(self, **columns: AnyArray) -> "Rows":
        """Return the rows with other columns, besides or in place of their own."""
        return Rows(self.table, {**self.columns, **columns})

    def where(self, which: AnyArray | slice) -> "Rows":
        """Return some of the rows, by a mask, their places or a slice."""
        return Rows(self.table, {name: values[which] for name, values in self.columns.items()})

    def wrong(self, which: AnyArray, what: str) -> Iterator[Finding]:
        """Yield a finding for each row of a mask; ``what`` may name columns: ``{bid}``."""
        for at in np.flatnonzero(which).tolist():
            yield self._finding(at, what.format_map({name: self._text(at, name) for name in self._names}))

    def differing(self, wanted: Mapping[str, AnyArray], source: str) -> Iterator[Finding]:
        """Yield a finding for each value that is not the one wanted."""
        for name, right in wanted.items():
            should = self.having(**{name: right})
            for at in np.flatnonzero(unequal(self[name], right)).tolist():
                what = f"{name} is {self._text(at, name)}, but {source} {should._text(at, name)}"
                yield self._finding(at, what)

    @property
    def _names(self) -> Sequence[str]:
        return ALL_TABLES[self.table].names

    def _finding(self, at: int, sentence: str) -> Finding:
        who = {"round": "round ", "service": "", "client": "client "}
        texts = {name: self._text(at, name) for name in who if name in self._names}
        place = ", ".join(f"{who[name]}{text}" for name, text in texts.items() if text != _NOTHING)
        return Finding(f"{place}: {sentence}", self.table, int(self["line"][at]))

    def _text(self, at: int, name: str) -> str:
        column, value = ALL_TABLES[self.table][name], self[name][at]
        if column.by is not None:
            key, cases = column.by
            column = cases.get(self[key][at], column)
        return _NOTHING if value != value else value_text(column, value)


def unequal(one: AnyArray, other: AnyArray) -> BoolArray:
    """Return where two columns differ; NaN stands for nothing, and equals itself."""
    different: BoolArray = (one != other) & ~((one != one) & (other != other))
    return different


_NOTHING = "nothing"
