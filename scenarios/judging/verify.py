"""``flmarket verify``: does a run's log keep every constraint, and does its money add up?

The rules are in ``scenarios.judging.rules``. What cannot be derived from the logs is checked by
``flmarket verify --rerun``.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from des.money import Micro
from fl.errors import InputError
from fl.files import reading_own
from scenarios.file.checks import played
from scenarios.judging.evidence import Logs, Row
from scenarios.judging.rules import RULES
from scenarios.loader import parse
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import SCENARIO, RunDirectory, State
from scenarios.logs.table import Column, Table


@dataclass(slots=True)
class Verdict:
    """What was found in one run.

    Attributes:
        path: the run's directory.
        rounds, offers: how many there are.
        paid: what all clients were paid, micro-units.
        problems: one sentence each; none for a valid run.
    """

    path: Path
    rounds: int = 0
    offers: int = 0
    paid: Micro = 0
    problems: list[str] = field(default_factory=list)


def verify(run: RunDirectory) -> Verdict:
    """Check a run's logs. The plug-ins that it was played with are not needed.

    Raises:
        InputError: the run failed or was interrupted; or a file is missing or is not the table it should be.
    """
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
    """Return a run's logs, or None if a value is unreadable; and what is wrong with the way the values are written.

    Raises:
        InputError: a file is missing, or is not the table it should be.
    """
    scenario = parse(run.scenario_text(), str(run.path / SCENARIO), catalogue=played())
    problems, readable = [], True
    tables: dict[str, list[Row]] = {}
    for name, table in TABLES.items():
        tables[name] = []
        for number, row in enumerate(_read(table, run.path), start=2):
            values: dict[str, Any] = {}
            for column in table.columns:
                text = row[column.name]
                where = f"{name}.csv, line {number}: {column.name}"
                try:
                    values[column.name], written = _value(column.beside(row), text)
                except ValueError as error:
                    problems.append(f"{where}: {error}")
                    readable = False
                    continue
                if written != text:
                    problems.append(f"{where}: {text!r} should be written {written!r}")
            tables[name].append(values)
    return Logs(scenario, **tables) if readable else None, problems


def _read(table: Table, directory: Path) -> list[Mapping[str, str]]:
    """Return a table's rows as text."""
    path = table.path(directory)
    try:
        with reading_own(table.check(directory)) as file:
            rows: list[Mapping[str, str]] = list(csv.DictReader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if any(None in row or None in row.values() for row in rows):
        raise InputError(f"{path}: a line has too few or too many values")
    return rows


def _value(column: Column | None, text: str) -> tuple[Any, str]:
    """Return the value of a text, and how flmarket writes it.

    Args:
        column: None where the text must be empty.
        text: from the table.

    Raises:
        ValueError: the column has no such value.
    """
    if column is None:
        if text:
            raise ValueError(f"{text!r}, where it must be empty")
        return None, ""
    try:
        value = column.read(text)
    except (ValueError, KeyError):
        value = float("nan")
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{text!r} is not a value of this column ({column.type.name}: {column.type.form})")
    return value, column.write(value)
