"""Writes a run's tables as the run goes, and cuts each back to its last mark when the run resumes.

So a run that was killed continues and ends with the same bytes. What stands in the tables is declared in
``scenarios.logs.columns``.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from des.log_records import RoundReport
from flmarket.core.errors import RunError
from flmarket.core.files import WriteError, replacing
from scenarios.logs.columns import TABLES
from scenarios.logs.table import Table


@dataclass(frozen=True, slots=True)
class Mark:
    """The part of a table that has been written."""

    size: int  # bytes
    sha256: str  # the digest of these bytes


class ReplacedError(RunError):
    """A table is no longer the file that was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: was replaced or changed by another program while the run was played; "
            "leave it alone, and the same command continues the run from its last checkpoint"
        )


class _File:
    """One table's file, written without a buffer: what was written is in the file, and nothing else ever will be."""

    def __init__(self, table: Table, directory: Path, mark: Mark | None) -> None:
        self._table, self._path = table, table.path(directory)
        self._hash = hashlib.sha256()
        self._size = 0
        try:
            self._file = os.open(self._path, os.O_RDWR | (0 if mark else os.O_CREAT | os.O_EXCL), 0o666)
        except FileNotFoundError as error:
            if mark is None:
                raise
            raise ValueError(f"{self._path}: is missing") from error
        if mark:
            try:
                self._check(mark)
            except BaseException:
                self.close()
                raise

    def write(self, text: str) -> None:
        content = text.encode()
        left = memoryview(content)
        try:
            while left:  # a disk that fills up takes a part
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise WriteError(self._path, error) from error
        self._hash.update(content)
        self._size += len(content)

    def sync(self) -> Mark:
        try:
            os.fsync(self._file)
            if not self._path.exists() or self._path.stat().st_size != self._size:
                self._put_back()
                raise ReplacedError(self._path)
        except OSError as error:
            raise WriteError(self._path, error) from error
        return Mark(self._size, self._hash.hexdigest())

    def _put_back(self) -> None:
        """Let the path hold what was written, from which the run can continue: only this process has it still."""
        with replacing(self._path) as file:
            for place in range(0, self._size, 1 << 20):
                file.write(os.pread(self._file, min(1 << 20, self._size - place), place))

    def close(self) -> None:
        os.close(self._file)

    def cut_to_mark(self) -> None:
        """Drop what was written after the mark."""
        os.ftruncate(self._file, self._size)

    def _check(self, mark: Mark) -> None:
        header = b""
        while self._size < mark.size and (block := os.read(self._file, min(1 << 20, mark.size - self._size))):
            header = header or block
            self._hash.update(block)
            self._size += len(block)
        if (self._size, self._hash.hexdigest()) != (mark.size, mark.sha256):
            raise ValueError(f"{self._path}: checksum mismatch")
        self._table.check_header(header.partition(b"\n")[0].decode().split(","), self._path)


class TableWriter:
    """Writes a run's tables as it goes: an observer of rounds. Use as a context manager."""

    def __init__(
        self,
        directory: Path,  # the run's directory
        # by table, where the run continues; without them there are no tables yet
        marks: Mapping[str, Mark] | None = None,
        tables: Mapping[str, Table] = TABLES,  # those that the run has, by name
    ) -> None:
        """Open the tables of a run: new ones with their headers, or those of a run that continues, cut to its marks."""
        self._files: dict[str, _File] = {}
        self._tables = tables
        try:
            for name, table in tables.items():
                path = table.path(directory)
                self._files[name] = _File(table, directory, marks[name] if marks else None)
            # Only when all tables are known to be right is any of them changed.
            for name, table in tables.items():
                if marks is None:
                    self._files[name].write(table.header)
                else:
                    self._files[name].cut_to_mark()
        except FileExistsError:
            self._close()
            raise
        except OSError as error:
            self._close()
            raise WriteError(path, error) from error
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, report: RoundReport) -> None:
        """Write a round; rounds.csv gets it last: a round that is there is in all tables, whoever reads meanwhile."""
        for name in reversed(self._files):
            self._files[name].write(self._tables[name].text(report))

    def sync(self) -> dict[str, Mark]:
        """Put the tables onto the disk itself and return how far they are written."""
        return {name: file.sync() for name, file in self._files.items()}

    def _close(self) -> None:
        for file in self._files.values():
            file.close()
