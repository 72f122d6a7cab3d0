"""``flmarket value``: what each client that served in a round was worth to a service, on real training."""

import re
from pathlib import Path
from typing import Annotated

import typer

from fl.cores import usable_cores
from fl.counting import counted
from fl.errors import InputError
from tui.commands.arguments import Plugins, load_plugins
from tui.commands.console import result, stdout
from tui.commands.launch import run_directory


def value(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.", show_default=False)],
    service: Annotated[str, typer.Option("--service", metavar="NAME", help="The service.", show_default=False)],
    round_: Annotated[
        int | None, typer.Option("--round", "-n", metavar="N", help="The round, from 1.", show_default=False)
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option("--rounds", metavar="FIRST..LAST", help="All rounds from one to another.", show_default=False),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the table to a CSV file.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Leave each client that served out in turn: what did it add to the accuracy, beside its DQI and its pay?

    Replays the service's training from the first round, so it needs the data sets.
    """
    from rich import box
    from rich.table import Table

    from fl.files import write_rows
    from scenarios.build import Shelf
    from scenarios.judging.value import COLUMNS, correlations, values
    from scenarios.logs.directory import RunDirectory
    from scenarios.logs.outside import require_place

    numbers = _numbers(round_, rounds)
    if csv is not None:
        require_place(csv)
    load_plugins(plugin)
    directory = RunDirectory(run_directory(run))
    found = list(values(directory, service, numbers, Shelf(), workers=usable_cores()))
    if csv is not None:  # first, as whoever reads the rest may stop reading
        write_rows(csv, COLUMNS, (each.cells() for each in found))
    table = Table(box=box.SIMPLE_HEAD)
    for name in COLUMNS:
        table.add_column(name.replace("_", " "), justify="right")
    for each in found:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in each.cells()))
    if found:
        stdout().print(table)
    served, asked = len({each.round for each in found}), counted(len(numbers), "round")
    result(
        f"{service}: {counted(len(found), 'value')} from {served} of {asked}; in the others nobody served it."
        if served < len(numbers)
        else f"{service}: {counted(len(found), 'value')} from {asked}."
    )
    for sentence in correlations(found):
        result(sentence)
    if csv is not None:
        result(f"{csv}: {counted(len(found), 'row')}")


def _numbers(one: int | None, several: str | None) -> range:
    """Return the rounds that are asked for."""
    if (one is None) == (several is None):
        raise InputError("choose the rounds: either --round N or --rounds FIRST..LAST")
    if one is not None:
        return range(one, one + 1)
    match = re.fullmatch(r"(\d{1,7})\.\.(\d{1,7})", several or "")
    if not match or int(match[1]) > int(match[2]):
        raise InputError(f"--rounds {several!r} is not a range such as 1..12")
    return range(int(match[1]), int(match[2]) + 1)
