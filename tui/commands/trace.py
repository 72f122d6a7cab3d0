"""``flmarket trace``: FedScale's traces of availability as a file that a scenario can name."""

from pathlib import Path
from typing import Annotated

import typer

from fl.counting import counted
from tui.commands.console import note, result


def trace(
    file: Annotated[Path, typer.Argument(metavar="FEDSCALE_FILE", help="FedScale's client_behave_trace, or JSON.")],
    rounds: Annotated[int, typer.Option(min=1, max=1_000_000, help="Rounds to cover.")],
    seconds_per_round: Annotated[float, typer.Option(min=1e-3, max=1e9, help="Length of a round, seconds.")],
    out: Annotated[Path, typer.Option(help="CSV file to write.")],
    clients: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Clients to take, the first of the file; all if not given.")
    ] = None,
) -> None:
    """Convert a FedScale trace of when phones are there to a file for `clients.availability`.

    A client is there in a round if it is when the round begins. Nothing in the file is executed.
    """
    from scenarios.fedscale import convert, write
    from scenarios.logs.outside import require_place

    require_place(out)
    found = convert(file, rounds, seconds_per_round, clients)
    write(found, out)
    if found.left_out:
        note(f"{counted(found.left_out, 'client')} left out: not there at the beginning of any round")
    result(f"{out}: {counted(found.clients, 'client')}, {counted(len(found.intervals), 'interval')}, {rounds} rounds")
