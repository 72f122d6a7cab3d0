"""The tables of complete runs, as data frames or side by side in one table with the run in front of each row."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from flmarket.core.counting import counted
from flmarket.core.errors import InputError, shortened
from scenarios.judging.identity import recorded
from scenarios.logs.columns import ALL_TABLES, CLIENTS
from scenarios.logs.directory import META, RunDirectory
from scenarios.logs.table import Column, Table

TableName = Literal["rounds", "offers", "events", "clients"]

_LONGEST_SHOWN = 60

KEYS = ("scenario", "policy", "seed")  # what stands in front of a row, where rows of many runs are together


def keys(run: RunDirectory) -> tuple[str, str, int]:
    """Return a run's ``KEYS``. The scenario comes with its hash, so that the points of a sweep stay apart."""
    meta = recorded(run)
    return f"{meta['scenario']}-{meta['hash']}", meta["policy"], meta["seed"]


def swept(sweeps: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys that any of these sweep points has, each once: a column each, behind ``KEYS``."""
    return list(dict.fromkeys(key for sweep in sweeps for key in sweep))


def sweep_text(value: Any) -> str:
    """Return a swept value as a table's text: text as it is, anything else as JSON, and nothing where there is none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def names_beside_keys(table: Table) -> list[str]:
    """Return a table's columns behind ``KEYS``: the service's policy is ``service_policy`` beside the run's."""
    return ["service_policy" if column == "policy" else column for column in table.names]


def require_table(run: RunDirectory, name: TableName) -> None:
    """Raise an InputError if a run has no such table because its clients are truthful."""
    if name == CLIENTS.name and not CLIENTS.path(run.path).exists():
        raise InputError(f"{run.path}: has no clients.csv: its clients are truthful, so offers.csv holds all of it")


def having(
    runs: Sequence[RunDirectory], name: TableName, notify: Callable[[str], None] = lambda _: None
) -> Sequence[RunDirectory]:
    """Return the runs that have a table, of which there is one in some runs alone."""
    if name != CLIENTS.name:
        return runs
    found = [run for run in runs if CLIENTS.path(run.path).exists()]
    if not found:
        require_table(runs[0], name)
    if without := len(runs) - len(found):
        notify(f"{without} of {counted(len(runs), 'run')} left out: without {name}.csv, as their clients are truthful")
    return found


def read_table(run: RunDirectory, name: TableName, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table of a run, or some of its columns. What is empty is NaN; money is in units."""
    require_table(run, name)
    table = ALL_TABLES[name]
    chosen = list(columns or table.names)
    try:
        with np.errstate(invalid="raise"):  # a number that is too large for its column
            frame = pd.read_csv(
                table.check(run.path),
                usecols=chosen,
                dtype={column: _dtype(table[column]) for column in chosen},
                # A service may be called NA.
                keep_default_na=False,
                na_values={column: [""] for column in chosen},
            )
    except (OSError, ValueError, ArithmeticError) as error:
        raise InputError(f"{table.path(run.path)}: cannot be read: {shortened(error)}") from error
    for column in chosen:
        if table[column].type.dtype == "string":
            require_plain(frame[column].dropna().unique(), str(table.path(run.path)))
    return frame[chosen]


def fronts(runs: Sequence[RunDirectory]) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns in front of the tables', and each run's texts in them."""
    sweeps = [run.sweep() for run in runs]
    names = swept(sweeps)
    found = []
    for run, sweep in zip(runs, sweeps, strict=True):
        found.append([*map(str, keys(run)), *(sweep_text(sweep.get(name)) for name in names)])
        require_plain([*names, *found[-1]], str(run.path / META))
    return [*KEYS, *names], found


def require_plain(texts: Iterable[str], where: str) -> None:
    """Raise an InputError for the first text that could act on a terminal."""
    for text in texts:
        if not text.isprintable():
            raise InputError(
                f"{where}: {text[:_LONGEST_SHOWN]!r} is no text that a run writes (control characters); play the run "
                "again with --fresh"
            )


def _dtype(column: Column) -> Any:
    if column.type.dtype == "string":
        return str
    # NumPy's whole numbers have no empty ones.
    return "float64" if column.empty else column.type.dtype
