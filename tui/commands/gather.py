"""``flmarket export``: many runs' logs in one file."""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from fl.errors import InputError
from scenarios.judging.export import Shape, Table, export, export_file


def export_runs(runs: Sequence[Path], csv: Path | None, parquet: Path | None, table: Table, shape: Shape) -> None:
    """Write a table of all runs as CSV or as Parquet, and say so.

    Raises:
        InputError: neither or both are asked for, or it can't be done.
    """
    if (csv is None) == (parquet is None):
        raise InputError("say where to write: either --csv FILE or --parquet FILE")
    if parquet is not None:
        from scenarios.judging.parquet import export_parquet

        if shape == "wide":
            raise InputError("--shape wide is for --csv")
        count = export_parquet(runs, parquet, table)
    elif csv is not None and str(csv) != "-":
        count = export_file(runs, csv, table, shape)
    else:
        export(runs, sys.stdout, table, shape)
        return
    typer.echo(f"{parquet or csv}: {table} of {count} run{'s' if count > 1 else ''}")
