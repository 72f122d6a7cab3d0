"""Rounds whose text is in the run's files and read when it is looked at, so that a long run takes little memory."""

import os
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path

from scenarios.logs.columns import ALL_TABLES, tables_in
from scenarios.logs.reading import LogError, round_spans

Spans = Mapping[str, tuple[int, int]]  # of each table: the first byte of a round, and the byte after its last


class StoredRounds:
    """The places of a run's rounds in its files: 16 bytes for each round and table."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tables: tuple[str, ...] = ()
        self._spans = array("q")

    def add(self, spans: Spans) -> None:
        """Add the place of the next round."""
        self._tables = self._tables or tuple(spans)
        for table in self._tables:
            self._spans.extend(spans[table])

    def add_text(self, text: Mapping[str, str]) -> None:
        """Add the place that the next round has, or will have, directly after the one before it."""
        before = self.spans(self.count) if self.count else {}
        spans = {}
        for table, lines in text.items():
            start = before[table][1] if before else len(ALL_TABLES[table].header.encode())
            spans[table] = start, start + len(lines.encode())
        self.add(spans)

    @property
    def count(self) -> int:
        return len(self._spans) // (2 * len(self._tables)) if self._tables else 0

    def spans(self, number: int) -> dict[str, tuple[int, int]]:
        """Return the place of a round."""
        first = 2 * len(self._tables) * (number - 1)
        return {
            table: (self._spans[first + 2 * place], self._spans[first + 2 * place + 1])
            for place, table in enumerate(self._tables)
        }

    def written(self, number: int) -> bool:
        """Whether the files hold a round."""
        try:
            return all(self._path(table).stat().st_size >= stop for table, (_, stop) in self.spans(number).items())
        except OSError:
            return False

    def read(self, number: int) -> dict[str, str]:
        """Return a round's lines of each table; raise LogError if the files do not have them."""
        return {table: self._read(table, *span) for table, span in self.spans(number).items()}

    def _read(self, table: str, start: int, stop: int) -> str:
        path = self._path(table)
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                content = os.pread(descriptor, stop - start, start)
            finally:
                os.close(descriptor)
            if len(content) < stop - start:
                raise LogError(f"{path.name}: has become shorter since the run was read")
            return content.decode()
        except OSError as error:
            raise LogError(f"{path.name}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise LogError(f"{path.name}: is not UTF-8 text") from error

    def _path(self, table: str) -> Path:
        return ALL_TABLES[table].path(self._directory)


def stored_rounds(directory: Path) -> Iterator[tuple[str, Spans]]:
    """Yield the lines in rounds.csv, and the place, of all rounds of a run directory whose last round is whole."""
    contents = {name: table.check(directory).read_bytes() for name, table in tables_in(directory).items()}
    spans = {name: round_spans(content) for name, content in contents.items()}
    rounds = contents.pop("rounds")
    contents.clear()
    for number, (start, stop) in spans["rounds"].items():
        yield rounds[start:stop].decode(), {table: found.get(number, (0, 0)) for table, found in spans.items()}
