"""Many runs' logs as one CSV file."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Literal

import pandas as pd

from flmarket.core.errors import InputError, shortened
from flmarket.core.files import asked_for
from flmarket.core.tracking import tracked
from scenarios.judging.tables import TableName, fronts, having, names_beside_keys
from scenarios.logs.columns import ALL_TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import complete_runs
from scenarios.logs.outside import require_outside_runs
from scenarios.logs.table import Table

Shape = Literal["long", "wide"]


def export(
    sources: Sequence[Path],  # run directories, or directories with runs at any depth below them
    target: IO[str],  # an open text file
    table: TableName = "rounds",  # the table to write
    # ``long``, or for rounds ``wide``: one row per round with columns such as ``mnist.accuracy``
    shape: Shape = "long",
    notify: Callable[[str], None] = lambda _: None,  # called with a line if some runs do not have the table
    damaged: Callable[[str], None] | None = None,  # as in ``complete_runs``
) -> int:
    """Write one table of all complete runs below the sources that have it, with the run in front of each row.

    The values are copied as text from the runs' own files. In front stand ``scenario`` (the name with its hash, so that
    sweep points stay apart), ``policy``, ``seed``, and a column for each swept key, empty for runs without it. The
    service's own policy becomes ``service_policy``, beside the run's ``policy``.
    """
    if shape == "wide" and table != "rounds":
        raise InputError(f"--shape wide is for --table rounds; {table} have no fixed number of rows in a round")
    runs = having(complete_runs(sources, damaged), table, notify)
    write = _wide if shape == "wide" else _long
    write(runs, target, ALL_TABLES[table])
    return len(runs)


def _long(runs: Sequence[RunDirectory], target: IO[str], table: Table) -> None:
    writer = csv.writer(target, lineterminator="\n")
    names, texts = fronts(runs)
    writer.writerow([*names, *names_beside_keys(table)])
    for run, front in zip(tracked(runs, "runs"), texts, strict=True):
        writer.writerows([*front, *row] for row in _rows(run, table))


def _wide(runs: Sequence[RunDirectory], target: IO[str], table: Table) -> None:
    index = ["round", "sim_time"]
    names, texts = fronts(runs)
    frames = []
    for run, front in zip(tracked(runs, "runs"), texts, strict=True):
        # As text: the digits stay as they were written.
        rounds = pd.DataFrame(_rows(run, table), columns=names_beside_keys(table))
        services = list(dict.fromkeys(rounds["service"]))
        values = [name for name in rounds.columns if name not in {*index, "service"}]
        order = [(value, service) for service in services for value in values]
        try:
            pivot = rounds.pivot(index=index, columns="service", values=values)  # noqa: PD010 - nothing is aggregated
            wide = pivot[order].sort_index(key=lambda level: level.astype(float))
        except (ValueError, KeyError) as error:  # no number, or two rows for one service
            raise InputError(f"{table.path(run.path)}: cannot be exported: {shortened(error)}") from error
        wide.columns = pd.Index([f"{service}.{value}" for value, service in order])
        wide = wide.reset_index()
        for position, (name, value) in enumerate(zip(names, front, strict=True)):
            wide.insert(position, name, [value] * len(wide))
        frames.append(wide)
    pd.concat(frames, ignore_index=True).to_csv(target, index=False, lineterminator="\n")


def _rows(run: RunDirectory, table: Table) -> Iterator[list[str]]:
    try:
        with table.check(run.path).open(encoding="utf-8", newline="") as file:
            reader = csv.reader(_plain(file, table.path(run.path)))
            next(reader)
            for row in reader:
                if len(row) != len(table.names):
                    where = f"{table.path(run.path)}, line {reader.line_num}"
                    raise InputError(f"{where}: has {len(row)} values, not {len(table.names)}")
                yield row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table.path(run.path)}: cannot be read: {error}") from error


def _plain(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line.rstrip("\n").isprintable():
            raise InputError(
                f"{path}, line {number}: no run writes such a line (control characters); play the run again with "
                "--fresh"
            )
        yield line


def export_file(
    sources: Sequence[Path],
    path: Path,
    table: TableName = "rounds",
    shape: Shape = "long",
    notify: Callable[[str], None] = lambda _: None,
    damaged: Callable[[str], None] | None = None,
) -> int:
    """Export into a file. An existing file is replaced only when the new one is complete."""
    require_outside_runs(path)
    with asked_for(path) as file:
        return export(sources, file, table, shape, notify, damaged)
