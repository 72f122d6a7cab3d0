"""The values in the logs of a run, apart from how they are written: a digest of each column of each table."""

import csv
import hashlib
from pathlib import Path


def canonical(text: str) -> str:
    """Return a value as it counts: numbers as Python writes them, however the log does."""
    try:
        return repr(float(text))
    except ValueError:
        return text


def digests(folder: Path) -> dict[str, dict[str, str]]:
    """Return a digest of each column of each run below a folder, by the table's path."""
    found = {}
    for path in sorted(folder.rglob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        columns = zip(*rows, strict=True) if rows else [()] * len(header)
        found[path.relative_to(folder).as_posix()] = {
            name: hashlib.sha256("\n".join(map(canonical, values)).encode()).hexdigest()[:16]
            for name, values in zip(header, columns, strict=True)
        }
    return found
