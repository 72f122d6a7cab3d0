"""``flmarket verify``: one line for each run, and one for each problem."""

from typing import Annotated

import typer

from fl.cores import usable_cores
from fl.errors import InputError
from tui.commands.arguments import Plugins, Runs, load_plugins


def verify(
    runs: Runs,
    rerun: Annotated[bool, typer.Option("--rerun", help="Also play each run again and compare byte for byte.")] = False,
    plugin: Plugins = None,
) -> None:
    """Check from the logs that every constraint holds and that the money adds up."""
    from des.money import text
    from scenarios.judging.verify import verify
    from scenarios.logs.directory import find_runs

    load_plugins(plugin)
    found = find_runs(runs)
    if not found:
        raise InputError(f"no run in {', '.join(map(str, runs))}")
    wrong = 0
    for run in found:
        verdict = verify(run)
        problems = verdict.problems
        if rerun and not problems:
            from scenarios.build import Shelf  # brings torch
            from scenarios.judging.rerun import rerun as play_again

            problems += play_again(run, Shelf(), workers=usable_cores())
        for problem in problems:
            typer.echo(f"{run.path}: {problem}")
        if not problems:
            same = ", same bytes again" if rerun else ""
            counts = f"{verdict.rounds} rounds, {verdict.offers} offers, {text(verdict.paid)} paid"
            typer.echo(f"{run.path}: valid: {counts}{same}")
        wrong += bool(problems)
    raise typer.Exit(1 if wrong else 0)
