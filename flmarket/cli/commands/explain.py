"""``flmarket explain``: why a service got the clients that it got in a round, and what it could have had."""

from pathlib import Path
from typing import Annotated

import typer

from flmarket.analysis.log_frames import write_frame
from flmarket.analysis.verification.evidence import Logs
from flmarket.cli.arguments import Plugins, load_plugins
from flmarket.cli.console import on_the_screen, program, result
from flmarket.core.files import asked_for
from scenarios.logs.directory import RunDirectory, require_place
from scenarios.logs.finding import run_directory


def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.", show_default=False)],
    round_: Annotated[int, typer.Option("--round", "-n", metavar="N", help="The round, from 1.", show_default=False)],
    service: Annotated[str, typer.Option("--service", metavar="NAME", help="The service.", show_default=False)],
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write a table of all clients to a CSV file.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Explain a service's round: the clients it wanted and got, its losses, and what it could have had."""
    from flmarket.analysis.what_if.explain import Explanation  # and with it torch

    if csv is not None:
        require_place(csv)
    load_plugins(plugin)
    directory = run_directory(run)
    explanation = Explanation(Logs.read_whole(RunDirectory(directory)), round_, service)
    if csv is not None:  # first, as a reader of the rest (``| head``) may stop reading
        with asked_for(csv) as file:
            write_frame(explanation.table(), file)
    for sentence in explanation.sentences():
        result(sentence)
    if csv is not None:
        result(f"{csv}: all clients of the round")
    result(f"On the screen: {program()} {on_the_screen(directory, round_, plugin or [])}")
