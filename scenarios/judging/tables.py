"""The tables of complete runs, as data frames or side by side in one table with the run in front of each row."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from fl.errors import InputError, shortened
from scenarios.judging.identity import recorded
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.table import Column

TableName = Literal["rounds", "offers", "events"]

KEYS = ("scenario", "policy", "seed")
"""What stands in front of a row, where rows of many runs are together."""


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


def names_beside_keys(name: TableName) -> list[str]:
    """Return a table's columns behind ``KEYS``: the service's policy is ``service_policy`` beside the run's."""
    return ["service_policy" if column == "policy" else column for column in TABLES[name].names]


def read_table(run: RunDirectory, name: TableName, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table of a run, or some of its columns. What is empty is NaN; money is in units.

    Raises:
        InputError: the file cannot be read, or is not what the table should be.
    """
    table = TABLES[name]
    chosen = list(table.names if columns is None else columns)
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
    return frame[chosen]


def _dtype(column: Column) -> Any:
    if column.type.dtype == "string":
        return str
    # NumPy's whole numbers have no empty ones.
    return "float64" if column.empty else column.type.dtype
