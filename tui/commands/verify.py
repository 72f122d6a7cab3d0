"""``flmarket verify``: one line for each run, and one for each problem."""

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from fl.errors import InputError
from scenarios.judging.verify import text, verify
from scenarios.logs.directory import find_runs


def verify_runs(sources: Sequence[Path], *, rerun: bool) -> int:
    """Check runs and print what was found; return the exit status: 0, or 1 if anything is wrong.

    Raises:
        InputError: there is no run, or its logs can't be read.
    """
    runs = find_runs(sources)
    if not runs:
        raise InputError(f"no run in {', '.join(map(str, sources))}")
    wrong = 0
    for run in runs:
        verdict = verify(run)
        problems = verdict.problems
        if rerun and not problems:
            from scenarios.build import Shelf  # brings torch
            from scenarios.judging.rerun import rerun as play_again

            problems += play_again(run, Shelf(), workers=len(os.sched_getaffinity(0)))
        for problem in problems:
            typer.echo(f"{run.path}: {problem}")
        if not problems:
            same = ", same bytes again" if rerun else ""
            typer.echo(
                f"{run.path}: good: {verdict.rounds} rounds, {verdict.offers} offers, {text(verdict.paid)} paid{same}"
            )
        wrong += bool(problems)
    return 1 if wrong else 0
