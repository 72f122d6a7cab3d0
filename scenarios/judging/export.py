"""Many runs' logs as one CSV file."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Literal

import pandas as pd

from fl.errors import InputError
from fl.files import reading_own, replacing_text
from scenarios.judging.tables import KEYS, TableName, keys, names_beside_keys, sweep_text, swept
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory, complete_runs

Shape = Literal["long", "wide"]


def export(sources: Sequence[Path], target: IO[str], table: TableName = "rounds", shape: Shape = "long") -> int:
    """Write one table of all complete runs below the sources, with the run in front of each row.

    The values are copied as text from the runs' own files. In front stand ``scenario`` (the name with its hash, so that
    sweep points stay apart), ``policy``, ``seed``, and a column for each swept key, empty for runs without it. The
    service's own policy becomes ``service_policy``, beside the run's ``policy``.

    Args:
        sources: run directories, or directories with runs at any depth below them.
        target: an open text file.
        table: the table to write.
        shape: ``long``, or for rounds ``wide``: one row per round with columns such as ``mnist.accuracy``.

    Returns:
        the number of runs exported.

    Raises:
        InputError: there is no complete run, or the table has no such shape.
    """
    if shape == "wide" and table != "rounds":
        raise InputError(f"--shape wide is for --table rounds; {table} have no fixed number of rows in a round")
    runs = complete_runs(sources)
    write = _wide if shape == "wide" else _long
    write(runs, target, table)
    return len(runs)


def _long(runs: Sequence[RunDirectory], target: IO[str], table: TableName) -> None:
    writer = csv.writer(target, lineterminator="\n")
    names, fronts = _fronts(runs)
    writer.writerow([*names, *names_beside_keys(table)])
    for run, front in zip(runs, fronts, strict=True):
        writer.writerows([*front, *row] for row in _rows(run, table))


def _wide(runs: Sequence[RunDirectory], target: IO[str], table: TableName) -> None:
    index = ["round", "sim_time"]
    names, fronts = _fronts(runs)
    frames = []
    for run, front in zip(runs, fronts, strict=True):
        # As text: the digits stay as they were written.
        rounds = pd.DataFrame(_rows(run, table), columns=names_beside_keys(table))
        services = list(dict.fromkeys(rounds["service"]))
        values = [name for name in rounds.columns if name not in {*index, "service"}]
        pivot = rounds.pivot(index=index, columns="service", values=values)  # noqa: PD010 - nothing is aggregated
        order = [(value, service) for service in services for value in values]
        wide = pivot[order].sort_index(key=lambda level: level.astype(float))
        wide.columns = pd.Index([f"{service}.{value}" for value, service in order])
        wide = wide.reset_index()
        for position, (name, value) in enumerate(zip(names, front, strict=True)):
            wide.insert(position, name, [value] * len(wide))
        frames.append(wide)
    pd.concat(frames, ignore_index=True).to_csv(target, index=False, lineterminator="\n")


def _fronts(runs: Sequence[RunDirectory]) -> tuple[list[str], list[list[str]]]:
    """Return the columns in front of the tables', and each run's values in them."""
    sweeps = [run.sweep() for run in runs]
    names = swept(sweeps)
    fronts = [
        [*map(str, keys(run)), *(sweep_text(sweep.get(name)) for name in names)]
        for run, sweep in zip(runs, sweeps, strict=True)
    ]
    return [*KEYS, *names], fronts


def _rows(run: RunDirectory, table: TableName) -> Iterator[list[str]]:
    try:
        with reading_own(TABLES[table].check(run.path)) as file:
            reader = csv.reader(file)
            next(reader)  # the header
            yield from reader
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{TABLES[table].path(run.path)}: cannot be read: {error}") from error


def export_file(sources: Sequence[Path], path: Path, table: TableName = "rounds", shape: Shape = "long") -> int:
    """Export into a file. An existing file is replaced only when the new one is complete.

    Raises:
        InputError: as ``export``, or the file cannot be written.
    """
    try:
        with replacing_text(path) as file:
            return export(sources, file, table, shape)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
