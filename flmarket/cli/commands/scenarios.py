"""``flmarket scenarios``: the built-in scenarios, and the file of each."""

from typing import Annotated

import typer

from flmarket.cli.console import result
from flmarket.core.rich_console import show
from scenarios.loader import builtin_names, builtin_text, load

scenarios = typer.Typer(help="List the built-in scenarios; `scenarios show NAME` prints a scenario's file.")


@scenarios.callback(invoke_without_command=True)
def list_scenarios(context: typer.Context) -> None:
    """List the built-in scenarios."""
    if context.invoked_subcommand is not None:
        return
    rows = (
        (name, str(len(it.services)), str(it.clients.count), str(it.rounds), it.description)
        for name in builtin_names()
        for it in [load(name)]
    )
    show(["name", "services", "clients", "rounds", "description"], rows)


@scenarios.command("show")
def show_scenario(name: Annotated[str, typer.Argument(help="Name of a built-in scenario.")]) -> None:
    """Print a built-in scenario's file, to start your own from."""
    result(builtin_text(name), end="")
