"""The commands that list what there is: ``flmarket scenarios``, ``flmarket policies`` and ``flmarket datasets``."""

from typing import Annotated

import typer
from rich.table import Table

from tui.commands.console import stdout

scenarios_app = typer.Typer(help="List the built-in scenarios; `scenarios show NAME` prints one's file.")


@scenarios_app.callback(invoke_without_command=True)
def list_scenarios(context: typer.Context) -> None:
    """List the built-in scenarios."""
    if context.invoked_subcommand is not None:
        return
    from scenarios.loader import builtin_names, load

    table = Table("name", "services", "clients", "rounds", "description")
    for name in builtin_names():
        scenario = load(name)
        row = (len(scenario.services), scenario.clients.count, scenario.rounds)
        table.add_row(name, *map(str, row), scenario.description)
    stdout().print(table)


@scenarios_app.command("show")
def show_scenario(name: Annotated[str, typer.Argument(help="Name of a built-in scenario.")]) -> None:
    """Print a built-in scenario's file, to start an own one from."""
    from scenarios.loader import builtin_text

    typer.echo(builtin_text(name), nl=False)


def policies() -> None:
    """List the policies a service can use."""
    from learning.policy import load, names

    table = Table("name", "privileged", "what it does")
    for name in names():
        found = load(name)
        table.add_row(name, "yes" if found.privileged else "", found.summary)
    stdout().print(table)


def datasets() -> None:
    """List the data sets a service can learn, and where the files are looked for."""
    from fl.datasets import data_root, info, names

    table = Table("name", "labels", "train", "test", "source", "what it is")
    for name in names():
        found = info(name)
        sizes = (f"{found.labels}", f"{found.train_size:,}", f"{found.test_size:,}")
        table.add_row(name, *sizes, found.source, found.description)
    stdout().print(table)
    typer.echo(f"Downloaded files live in {data_root()} (set FLMARKET_DATA to change it).")
