"""``flmarket verify``: does a run's log keep every constraint, and does its money add up?

The rules are in ``scenarios.judging.rules``. What cannot be derived from the logs is checked by
``flmarket verify --rerun``.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import isfinite
from pathlib import Path
from typing import Any

from des.behaviour import TRUTHFUL
from des.money import Micro
from flmarket.core.errors import InputError
from scenarios.file.checks import played
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.identity import recorded
from scenarios.judging.rules import RULES
from scenarios.loader import parse
from scenarios.logs.columns import tables_of
from scenarios.logs.directory import SCENARIO, RunDirectory, State
from scenarios.logs.table import Column, Table

_LARGEST = 2**63 - 1  # of whole numbers, money in micro-units included
_LONGEST = 40  # characters of a value in a message


@dataclass(slots=True)
class Verdict:
    """What was found in one run."""

    path: Path  # the run's directory
    rounds: int = 0  # how many rounds there are
    offers: int = 0  # how many offers there are
    paid: Micro = 0  # what all clients were paid, micro-units
    problems: list[str] = field(default_factory=list)  # one sentence each; none for a valid run


def verify(run: RunDirectory) -> Verdict:
    """Check a run's logs. The plug-ins that it was played with are not needed."""
    verdict = Verdict(run.path)
    if run.state is not State.COMPLETE:
        raise InputError(f"{run.path}: {run.unfinished()}")
    verdict.problems += run.damage(digests=True)
    try:
        logs, problems = read_logs(run)
    except InputError:
        if verdict.problems:  # the damage says why
            return verdict
        raise
    verdict.problems += problems
    if logs is not None:
        for rule in RULES.values():
            verdict.problems += rule(logs)
        verdict.rounds = len({row["round"] for row in logs.rounds})
        verdict.offers = len(logs.offers)
        verdict.paid = sum(row["spent"] for row in logs.rounds)
    return verdict


def read_logs(run: RunDirectory) -> tuple[Logs | None, list[str]]:
    """Return a run's logs, or None if a value is unreadable; and what is wrong with the way the values are written."""
    scenario = parse(run.scenario_text(), str(run.path / SCENARIO), catalogue=played())
    meta = recorded(run)
    problems: list[str] = []
    readable = True
    tables: dict[str, list[Row]] = {}
    for name, table in tables_of(truthful=scenario.clients.behaviour.kind == TRUTHFUL).items():
        text = _text(table, run.path)
        lines = _rows(table, text, run.path)
        if (line := _misplaced(table, lines, text)) is not None:
            problems.append(f"{name}.csv, line {line}: has other quotes or line ends than flmarket writes")
        tables[name], wrong, unreadable = _values(table, lines)
        problems += [f"{name}.csv, line {line}: {problem}" for line, problem in wrong]
        readable = readable and not unreadable
    return Logs(scenario, meta, meta["seed"], **tables) if readable else None, problems


def read_whole(run: RunDirectory) -> Logs:
    """Return the logs of a complete run in which nothing is wrong."""
    if run.state is not State.COMPLETE:
        raise InputError(f"{run.path}: {run.unfinished()}")
    run.require_whole(digests=True)
    logs, problems = read_logs(run)
    if logs is None or problems:
        raise InputError(f"{run.path}: {problems[0]}")
    return logs


def _values(table: Table, lines: Sequence[Sequence[str]]) -> tuple[list[Row], list[tuple[int, str]], bool]:
    """Return a table's rows as values; lines of the file and their problems; and whether a value is unreadable."""
    rows: list[dict[str, Any]] = [{} for _ in lines]
    problems, unreadable = [], False
    for at, column in enumerate(table.columns):
        key = at if column.by is None else table.names.index(column.by[0])
        good: dict[tuple[str, str], Any] = {}  # most cells say what another one of their column says
        for number, (line, row) in enumerate(zip(lines, rows, strict=True), start=2):
            cell = line[at], line[key]
            if cell in good:
                row[column.name] = good[cell]
                continue
            kind = column if column.by is None else column.by[1].get(line[key])
            try:
                row[column.name], written = _value(kind, line[at])
            except ValueError as error:
                problems.append((number, f"{column.name}: {error}"))
                unreadable = True
                continue
            if written == line[at]:
                good[cell] = row[column.name]
            else:
                problems.append((number, f"{column.name}: {_short(line[at])} should be written {_short(written)}"))
    return list(rows), sorted(problems), unreadable


def _text(table: Table, directory: Path) -> str:
    try:
        with table.check(directory).open(encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{table.path(directory)}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{table.path(directory)}: is not UTF-8 text: {error}") from error


def _rows(table: Table, text: str, directory: Path) -> list[list[str]]:
    path = table.path(directory)
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        next(reader)  # the header
        for row in reader:
            if row and len(row) != len(table.names):
                raise InputError(f"{path}, line {reader.line_num}: has {len(row)} values, not {len(table.names)}")
            if row:
                rows.append(row)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: cannot be read: {error}") from error
    return rows


def _misplaced(table: Table, rows: Sequence[Sequence[str]], text: str) -> int | None:
    """Return the first line of a text that flmarket would write differently, its values being what they are."""
    buffer = io.StringIO(newline="")
    buffer.write(table.header)
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    if (written := buffer.getvalue()) == text:
        return None
    pairs = enumerate(zip_longest(text.split("\n"), written.split("\n")), start=1)
    return next(line for line, (one, other) in pairs if one != other)


def _value(column: Column | None, text: str) -> tuple[Any, str]:
    if column is None:
        if text:
            raise ValueError(f"{_short(text)}, where it must be empty")
        return None, ""
    try:
        value = column.read(text)
    except (ValueError, KeyError):
        value = float("nan")
    if (isinstance(value, float) and not isfinite(value)) or (isinstance(value, int) and abs(value) > _LARGEST):
        raise ValueError(f"{_short(text)} is not a value of this column ({column.type.name}: {column.type.form})")
    return value, column.write(value + 0.0 if isinstance(value, float) else value)  # -0.0 + 0.0 is 0.0


def _short(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
