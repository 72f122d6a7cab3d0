"""Rounds whose text stays in the run's files until it is looked at, so that a long run takes little memory."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from fl.files import open_own, read_own
from scenarios.logs.columns import ALL_TABLES, CLIENTS, tables_in, tables_of
from scenarios.logs.reading import LogError, round_spans


class StoredText(Mapping[str, str]):
    """A round's lines of each table, read from the run's files each time."""

    __slots__ = ("_directory", "_spans")

    def __init__(
        self,
        directory: Path,  # the run's
        spans: Mapping[str, tuple[int, int]],  # the first byte of the round in each table, and the byte after its last
    ) -> None:
        self._directory = directory
        self._spans = tuple(spans[table] for table in tables_of(truthful=CLIENTS.name not in spans))

    def __getitem__(self, table: str) -> str:
        start, stop = self._spans[self._names.index(table)]
        path = ALL_TABLES[table].path(self._directory)
        try:
            descriptor = open_own(path, os.O_RDONLY)
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

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._spans)

    @property
    def _names(self) -> list[str]:
        return list(ALL_TABLES)[: len(self._spans)]  # clients.csv, which not every run has, is the last one


def stored_rounds(directory: Path) -> Iterator[tuple[str, StoredText]]:
    """Yield the lines in rounds.csv, and the text, of all rounds of a run directory whose last round is whole."""
    contents = {name: read_own(table.check(directory)) for name, table in tables_in(directory).items()}
    spans = {name: round_spans(content) for name, content in contents.items()}
    rounds = contents.pop("rounds")
    contents.clear()
    for number, (start, stop) in spans["rounds"].items():
        text = StoredText(directory, {table: found.get(number, (0, 0)) for table, found in spans.items()})
        yield rounds[start:stop].decode(), text


class Spill:
    """The places of a live run's rounds in its files, and whether they are written already."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ends: dict[str, int] = {}

    def place(self, text: Mapping[str, str]) -> dict[str, tuple[int, int]]:
        """Return where the next round will be; rounds come in order."""
        spans = {}
        for table in text:
            end = self._ends.setdefault(table, len(ALL_TABLES[table].header.encode()))
            self._ends[table] = end + len(text[table].encode())
            spans[table] = (end, self._ends[table])
        return spans

    def written(self, spans: Mapping[str, tuple[int, int]]) -> bool:
        """Whether a round is in the files."""
        try:
            sizes = {table: ALL_TABLES[table].path(self._directory).stat().st_size for table in spans}
        except OSError:
            return False
        return all(sizes[table] >= stop for table, (_, stop) in spans.items())
