"""``flmarket verify``: one line for each run, one for each problem, and one that counts the valid runs."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from des.money import text
from flmarket.analysis.verification.rerun import rerun as run_again
from flmarket.analysis.verification.verify import verify as verdict_of
from flmarket.cli.arguments import Plugins, Runs, load_plugins
from flmarket.cli.console import note, result
from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import usable_cores
from flmarket.core.text import counted
from scenarios.build import Shelf
from scenarios.logs.directory import RunDirectory
from scenarios.logs.finding import find_runs
from scenarios.logs.unlike_runs import other_version

VALID, FAILED, UNCHECKED, IN_PART = range(4)  # what was found of a run


def verify(
    runs: Runs,
    rerun: Annotated[bool, typer.Option("--rerun", help="Also play each run again and compare byte for byte.")] = False,
    plugin: Plugins = None,
) -> None:
    """Check from the logs that every constraint holds and that the money adds up.

    Ends with status 1 if a run has a problem, else with 2 if something could not be checked, such as a run that failed
    or was interrupted.
    """
    load_plugins(plugin)
    raise typer.Exit(verified(runs, rerun=rerun, apart=bool(plugin)))


def verified(
    runs: Sequence[Path],
    *,
    rerun: bool = False,
    apart: bool = False,  # whether there are plug-ins, of which an exception is no defect of flmarket
) -> int:
    """Say what was found of each run; return the exit status of the command."""
    there = find_runs(runs)
    directories = [*there.ended, *there.begun]
    if not directories:
        raise InputError("; ".join([f"no run in {', '.join(map(str, runs))}", *there.unreadable]))
    for folder in there.unreadable:
        result(f"{folder}: not checked")
    counts = Counter({UNCHECKED: len(there.unreadable)})
    counts.update(_verify(run, again=rerun, apart=apart) for run in directories)
    unchecked = counts[UNCHECKED] + counts[IN_PART]
    if len(directories) > 1:
        valid = f"{counts[VALID] + counts[IN_PART]:,} of {len(directories):,} runs are valid"
        note(valid + (f"; {unchecked:,} could not be checked in full" if unchecked else ""))
    return 1 if counts[FAILED] else 2 if unchecked else 0


def _verify(run: RunDirectory, *, again: bool, apart: bool) -> int:
    """Print what is to be said of one run, and return what was found. ``apart``: see ``rerun``."""
    try:
        verdict = verdict_of(run)
    except InputError as error:
        _print(run, f"not checked: {_without_place(run, str(error))}")
        return UNCHECKED
    problems, same, obstacle = verdict.problems, "", None
    if again and not problems:
        try:
            problems = _play_again(run, apart=apart)
            same = ", same bytes again"
        except InputError as error:
            obstacle = _without_place(run, str(error))
    for problem in problems:
        _print(run, _without_place(run, problem))
    if problems:
        if caveat := other_version(run.meta()):
            _print(run, caveat)
        return FAILED
    counts = f"{counted(verdict.rounds, 'round')}, {counted(verdict.offers, 'offer')}"
    _print(run, f"valid: {counts}, {text(verdict.paid)} paid{same}")
    left = [f"not checked: {it}" for it in verdict.unchecked]
    left += [] if obstacle is None else [f"not played again: {obstacle}"]
    for sentence in left:
        _print(run, sentence)
    return IN_PART if left else VALID


def _play_again(run: RunDirectory, *, apart: bool) -> list[str]:
    """Return how a run differs when it is played again, or that it failed."""
    try:
        return run_again(run, Shelf(), workers=usable_cores(), apart=apart)
    except RunError as error:
        return [f"failed when it was played again: {error}"]


def _without_place(run: RunDirectory, text: str) -> str:
    return text.removeprefix(f"{run.path}: ").removeprefix(f"{run.path}/")


def _print(run: RunDirectory, text: str) -> None:
    result(f"{run.path}: {text}")
