"""The values in the logs of runs, apart from how they are written: a digest of each column of each table."""

import csv
import hashlib
from collections.abc import Iterable
from pathlib import Path

Run = dict[str, dict[str, str]]
"""Digests of a run's logs, by table and column."""


def canonical(text: str) -> str:
    """Return a value as it counts: numbers as Python writes them, however the log does."""
    try:
        return repr(float(text))
    except ValueError:
        return text


def digest(values: Iterable[str]) -> str:
    """Return a short digest of values."""
    return hashlib.sha256("\n".join(map(canonical, values)).encode()).hexdigest()[:12]


def runs(folder: Path) -> list[Run]:
    """Return the digests of all complete runs below a folder, in an order that depends on them alone."""
    return sorted((_run(path.parent) for path in folder.rglob("meta.json")), key=str)


def _run(folder: Path) -> Run:
    found = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        columns = zip(*rows, strict=True) if rows else [()] * len(header)
        found[path.stem] = {name: digest(values) for name, values in zip(header, columns, strict=True)}
    return found


def holds(recorded: Run, found: Run) -> bool:
    """Whether a run has the recorded values; it may have columns and tables that were not recorded."""
    return all(columns.items() <= found.get(table, {}).items() for table, columns in recorded.items())
