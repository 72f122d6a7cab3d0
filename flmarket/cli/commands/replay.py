"""``flmarket replay``: opens a run in the terminal user interface, or records what that would show."""

from pathlib import Path
from typing import Annotated

import typer

from flmarket.cli.arguments import Plugins, load_plugins
from flmarket.cli.console import result
from flmarket.cli.launch import start
from flmarket.core.errors import InputError
from flmarket.core.text import counted
from scenarios.logs.directory import require_place
from scenarios.logs.finding import run_directory
from scenarios.logs.reading import LogError, RunReader


def replay(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory: complete, interrupted or still running.")
    ],
    round_: Annotated[
        int | None, typer.Option("--round", "-n", metavar="N", help="The round to begin with, from 1.", min=1)
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.cast", help="Record the rounds instead, for asciinema: a file that plays in its player."
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Watch a run again, round by round, in the terminal user interface."""
    load_plugins(plugin)
    directory = run_directory(run)
    if round_ is not None:
        _require_round(directory, round_)
    if save is None:
        start(str(directory), Path("runs"), round_ or 0)
        return

    if save.suffix != ".cast":
        raise InputError(f"--save {save}: the file is for asciinema, whose files end in .cast")
    require_place(save)
    from tui.recording import record

    rounds = record(directory, save, round_ or 1)
    result(f"{save}: {counted(rounds, 'round')}")


def _require_round(run: Path, number: int) -> None:
    """Refuse a round that a run directory does not have."""
    try:
        newest, _ = RunReader(run).last()
    except LogError as error:
        raise InputError(f"{run}: {error}") from error
    if number > newest:
        rounds = f"rounds 1 to {newest}" if newest else "no round"
        raise InputError(f"unknown round {number}; the run has {rounds}")
