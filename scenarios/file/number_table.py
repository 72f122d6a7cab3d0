"""CSV files of whole numbers, of which a mistake is named with its line."""

import csv
import io
from collections.abc import Iterator, Sequence

from flmarket.core.errors import InputError
from flmarket.core.text import printable


def decoded(path: str, content: bytes) -> str:
    """Return a file's text."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}:{content.count(10, 0, error.start) + 1}: is not UTF-8 text") from error


def rows(path: str, text: str, columns: Sequence[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield the rows, each with its place, which is the file and the line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if (found := next(reader, [])) != [*columns]:
            header = printable(",".join(found)[:40])
            raise InputError(f"{path}:1: must have the columns {','.join(columns)}, not {header!r}")
        for row in filter(None, reader):
            where = f"{path}:{reader.line_num}"
            if len(row) != len(columns):
                raise InputError(f"{where}: has {len(row)} values, not {len(columns)}")
            yield where, [whole(f"{where}: {name}", value) for name, value in zip(columns, row, strict=True)]
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: is not CSV: {error}") from error


def whole(where: str, text: str) -> int:
    """Return a number that stands in a file as text."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InputError(f"{where} must be a whole number below a billion, not {printable(text[:20])!r}")
    return int(text)
