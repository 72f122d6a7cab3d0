"""The comparison of tables by the rules of ``flmarket verify``, and the lines in which something is wrong."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from des.money import text as money
from scenarios.logs.columns import ALL_TABLES
from scenarios.logs.table import MONEY

_MONEY = {column.name for table in ALL_TABLES.values() for column in table.columns if column.type is MONEY}


def wrong(rows: pd.DataFrame, which: Any, what: str) -> Iterator[str]:
    """Yield what is wrong with the rows for which ``which`` [rows] is true; ``what`` may name columns: ``{bid}``."""
    chosen = np.asarray(which, dtype=np.bool_)
    for row in rows[chosen].to_dict("records") if chosen.any() else ():
        yield f"{_place(row)}: {what.format_map({str(name): shown(str(name), value) for name, value in row.items()})}"


def differing(rows: pd.DataFrame, wanted: pd.DataFrame, source: str) -> Iterator[str]:
    """Yield each value that is not the one wanted in the same line; NaN stands for nothing, and is equal to itself."""
    for name in map(str, wanted):
        found, right = rows[name].array, wanted[name].array
        same = (found == right) | (pd.isna(found) & pd.isna(right))
        for line in np.flatnonzero(~same):
            place = _place(rows.iloc[line].to_dict())
            yield f"{place}: {name} is {shown(name, found[line])}, but {source} {shown(name, right[line])}"


def shown(name: str, value: Any) -> str:
    """Return a value of a column as a message shows it."""
    if pd.isna(value):
        return "nothing"
    return money(round(value)) if name in _MONEY else str(value)


def _place(row: dict[Any, Any]) -> str:
    client = "" if pd.isna(row.get("client")) else f": client {row['client']:.0f}"
    service = "" if pd.isna(row["service"]) else f": {row['service']}"
    return f"round {row['round']}{service}{client}"
