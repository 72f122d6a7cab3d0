"""A run's logs as data frames: the one place where these are made. What is empty is NaN.

Money is in whole micro-units, time in whole microseconds.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pandas as pd

from des.money import MICRO
from fl.arrays import AnyArray
from flmarket.core.errors import InputError, shortened
from flmarket.core.text import counted
from scenarios.logs.columns import ALL_TABLES, CLIENTS, MODELS, RESPONSES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.table import Column, Table

TableName = Literal["rounds", "offers", "events", "clients", "responses", "models"]


_FORMULA = re.compile(r"[=@]|[+-](?!\.?\d[\d.]*(e[+-]?\d+)?$)")
"""The beginning of a formula, but not of a number: numbers, too, are text in a table as its file has it."""


class BadTableError(InputError):
    """A table holds what no run writes."""


def read_table(
    run: RunDirectory,
    name: str,
    size: int | None = None,  # bytes of a table that is still written, up to a checkpoint
) -> pd.DataFrame:
    """Return a table of a run; whole numbers that may be empty are floats, because NumPy's cannot be missing."""
    [table] = _pieces(run, name, size=size)
    return table


def read_by_rounds(
    run: RunDirectory,
    names: Iterable[str],  # of tables
    lines: int | None,  # how many of a table are read at a time; None: all are
) -> Iterator[tuple[int | None, Mapping[str, pd.DataFrame]]]:
    """Yield the lines of tables in blocks of whole rounds: the last round of each, None for that of the run.

    A line in the wrong place is in the block of its neighbours.
    """
    pieces = {name: _pieces(run, name, lines) for name in names}
    held: dict[str, pd.DataFrame] = {}
    last = 0
    while pieces:
        for name in [*pieces]:
            while name in pieces and (name not in held or _newest(held[name]) - 1 <= last):
                piece = next(pieces[name], None)
                if piece is not None:
                    held[name] = pd.concat([held[name], piece]) if name in held else piece
                if piece is None or lines is None or len(piece) < lines:
                    del pieces[name]
        if pieces:
            last = min(_newest(held[name]) - 1 for name in pieces)
            ends = {name: 1 + np.flatnonzero(of["round"] <= last).max(initial=-1) for name, of in held.items()}
            yield last, {name: of.iloc[: ends[name]] for name, of in held.items()}
            held = {name: of.iloc[ends[name] :] for name, of in held.items()}
    yield None, held


def _newest(frame: pd.DataFrame) -> int:
    """Return the round of the last line, of which more may follow."""
    return int(frame["round"].iloc[-1]) if len(frame) else 0


def _pieces(run: RunDirectory, name: str, lines: int | None = None, size: int | None = None) -> Iterator[pd.DataFrame]:
    """Yield a table in pieces of so many lines, the last one shorter; the index goes on from one to the next."""
    table = ALL_TABLES[name]
    types = {column.name: _dtype(column) for column in table.columns}
    having([run], name)
    try:
        path = table.check(run.path)
        content = path.open("rb") if size is None else io.BytesIO(path.read_bytes()[:size])
        # A service may be called NA.
        options: Any = {"dtype": types, "keep_default_na": False, "na_values": [""]}
        with content, pd.read_csv(content, iterator=True, chunksize=lines, **options) as reader:
            while True:
                with np.errstate(invalid="raise"):  # a number that is too large for its column
                    frame = next(reader, None)
                if frame is None:
                    return
                yield _checked(frame, table, path)
    except OSError as error:
        raise InputError(f"{table.path(run.path)}: cannot be read: {shortened(error)}") from error
    except (ValueError, ArithmeticError) as error:
        empty = re.fullmatch(r"Integer column has NA values in column (\d+)", str(error))
        reason = f"a line has no {table.names[int(empty[1])]}" if empty else shortened(error)
        raise BadTableError(f"{table.path(run.path)}: cannot be read: {reason}") from error


def _checked(frame: pd.DataFrame, table: Table, path: Path) -> pd.DataFrame:
    """Return lines of a table with its exact numbers as whole ones, after a look at their values."""
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes a further value to name the line
        raise BadTableError(f"{path}: cannot be read: a line has more values than there are columns")
    scales = _scales(frame, table)
    values: dict[str, Any] = {}
    for column in table.columns:
        key, text = column.name, column.type.dtype == "string"
        # The different texts, or all numbers as NumPy has them: pandas takes a multiple of the time for either.
        distinct = np.array([*frame[key].unique()], dtype=object) if text else frame[key].to_numpy()
        known = pd.notna(distinct)
        if not (column.empty or known.all()):
            raise BadTableError(f"{path}: cannot be read: a line has no {key}")
        if distinct.dtype == "float64" and np.isinf(distinct).any():
            raise BadTableError(f"{path}: cannot be read: a line has an infinite {key}")
        if text and not all(map(str.isprintable, distinct[known])):
            raise BadTableError(f"{path}: cannot be read: a {key} has control characters")
        if key in scales:
            with np.errstate(over="ignore"):  # what is infinite then is too large
                micro = np.where(scales[key] == 1, distinct, np.rint(distinct * scales[key]))
            if not column.empty and not (np.abs(micro) < 2.0**63).all():
                raise BadTableError(f"{path}: cannot be read: a {key} is too large")
            values[key] = micro if column.empty else micro.astype(np.int64)
    return frame.assign(**values)


def lines_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the lines of a table as named tuples, their place in the table as ``Index``."""
    return iter(frame.itertuples())


def in_units(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a table with its money in units and its times in seconds: the numbers that the file has."""
    return frame.assign(**{column: frame[column] / scale for column, scale in _scales(frame, ALL_TABLES[name]).items()})


def written(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a table as the text that flmarket writes of it."""
    return pd.DataFrame(_texts(frame, name), dtype=str)


def text_of(frame: pd.DataFrame, name: str, *, header: bool = True) -> str:
    """Return a table as the file that flmarket writes of it."""
    buffer, texts = io.StringIO(), _texts(frame, name)
    writer = csv.writer(buffer, lineterminator="\n")
    if header:
        writer.writerow(texts)
    writer.writerows(zip(*texts.values(), strict=True))
    return buffer.getvalue()


def write_frame(frame: pd.DataFrame, file: IO[str], *, header: bool = True) -> None:
    """Write a table for spreadsheets: what would be a formula there, in a stranger's run, is text behind a ``'``."""
    texts = {
        str(name): frame[name].map({it: _no_formula(it) for it in frame[name].unique()}, na_action="ignore")
        for name in frame.select_dtypes(exclude=["number", "bool"])
        if any(_no_formula(it) is not it for it in frame[name].unique())
    }
    frame.assign(**texts).rename(columns=_no_formula).to_csv(file, index=False, header=header, lineterminator="\n")


def _no_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def value_text(column: Column, value: Any) -> str:
    """Return a value of a column of a table as the text that flmarket writes of it."""
    if column.type.dtype == "int64" or column.type.exact:
        return column.type.write(int(value))
    return column.type.write(value + 0.0 if isinstance(value, float) else value)  # -0.0 + 0.0 is 0.0


def _texts(frame: pd.DataFrame, name: str) -> dict[str, list[str]]:
    texts = {}
    for column in ALL_TABLES[name].columns:
        values, cells = frame[column.name].to_numpy(), np.empty(len(frame), dtype=object)
        if column.by is None:
            cells[:] = _different(column, values)
        else:
            key, cases = column.by
            kinds = frame[key].to_numpy()
            for kind in set(kinds):
                cells[kinds == kind] = _different(cases.get(kind, column), values[kinds == kind])
        texts[column.name] = cells.tolist()
    return texts


def _different(column: Column, values: AnyArray) -> AnyArray:
    """Return the texts of values, writing each value once."""
    place, different = pd.factorize(values)  # nothing (NaN) has the place -1
    return np.array([*(value_text(column, value) for value in different.tolist()), ""], dtype=object)[place]


def having(
    runs: Sequence[RunDirectory], name: str, notify: Callable[[str], None] = lambda _: None
) -> Sequence[RunDirectory]:
    """Return the runs that have a table; some have no clients.csv, responses.csv or models.csv."""
    if (why := _WITHOUT.get(name)) is None:
        return runs
    with_table = [run for run in runs if ALL_TABLES[name].path(run.path).exists()]
    if not with_table:
        raise InputError(f"{runs[0].path}: has no {name}.csv: its {why}, so offers.csv holds all of it")
    if without := len(runs) - len(with_table):
        notify(f"{without} of {counted(len(runs), 'run')} left out: without {name}.csv, as their {why}")
    return with_table


_WITHOUT = {
    CLIENTS.name: "clients are truthful",
    RESPONSES.name: "clients do all of the work",
    MODELS.name: "rounds end with their work",
}  # why a table is not there


def _dtype(column: Column) -> Any:
    if column.type.dtype == "string":
        return str
    return "float64" if column.empty else column.type.dtype


def _scales(frame: pd.DataFrame, table: Table) -> dict[str, Any]:
    """Return the millionths in a unit of each column that counts them; of the events' amount, line by line."""
    scales: dict[str, Any] = {column.name: MICRO for column in table.columns if column.type.exact}
    for column in table.columns:
        if column.by is not None:
            key, cases = column.by
            exact = [kind for kind, case in cases.items() if case.type.exact]
            scales[column.name] = np.where(frame[key].isin(exact), MICRO, 1)
    return scales
