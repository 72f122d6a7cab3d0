"""``flmarket export``: many runs' logs in one file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from flmarket.analysis.log_frames import TableName
from flmarket.analysis.results.export import export as export_csv
from flmarket.analysis.results.export import export_parquet
from flmarket.cli.arguments import Runs
from flmarket.cli.console import missing, note, result
from flmarket.core.errors import InputError
from flmarket.core.text import counted
from flmarket.core.tracking import hide
from scenarios.logs.finding import find_runs, incomplete, unfinished


def export(
    runs: Runs,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="CSV file to write; `-` is standard output.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Parquet file to write; needs pyarrow.")
    ] = None,
    table: Annotated[TableName, typer.Option(help="The log to export.")] = "rounds",
) -> None:
    """Gather the logs of runs into one file, with columns for scenario, policy, seed and what differs.

    docs/logs.md describes the columns.
    """
    if (csv is None) == (parquet is None):
        raise InputError("choose one file to write: either --csv FILE or --parquet FILE")
    places, damaged = find_runs(runs), list[str]()
    if parquet is not None:
        count = export_parquet(places, parquet, table, note, damaged.append)
    else:
        if str(csv) == "-":
            hide()  # the rows say enough
        count = export_csv(places, sys.stdout if csv is None or str(csv) == "-" else csv, table, note, damaged.append)
    if parquet or str(csv) != "-":
        result(f"{parquet or csv}: {table} of {counted(count, 'run')}")
    missing(incomplete(unfinished(places)), damaged)
