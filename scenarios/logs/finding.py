"""The runs below some folders: complete ones, failed ones, and those that were interrupted."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flmarket.core.errors import InputError
from flmarket.core.files import find_below, walk
from flmarket.core.text import counted
from scenarios.logs.directory import META, NOT_A_RUN, SCENARIO, RunDirectory, RunDirectoryError
from scenarios.logs.identity import require_itself
from scenarios.logs.run_state import RunState

RUN = re.compile(r"seed-[0-9]+")
"""The name of a run's directory."""

_MOST_SHOWN = 10  # runs that a message lists


def require_directory(place: Path) -> None:
    """Raise an InputError if a place is not a directory: a run's, or one with runs below it."""
    if place.exists() and not place.is_dir():
        raise InputError(f"{place}: is a file; name the directory of a run, or a folder with runs in it")
    if not place.exists():
        raise InputError(f"{place}: no such directory")


def run_directory(path: Path) -> Path:
    """Return the run directory at ``path``, or the only one below it."""
    require_directory(path)
    if (path / "scenario.toml").exists():
        return path
    found = [below.parent for below in find_below(path, "scenario.toml")]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"{path}: {NOT_A_RUN}")
    shown = "\n".join(f"  {run}" for run in found[:_MOST_SHOWN])
    more = f"\n  ({len(found) - _MOST_SHOWN} more)" if len(found) > _MOST_SHOWN else ""
    raise InputError(f"{path}: contains {len(found)} runs; choose one:\n{shown}{more}")


@dataclass(frozen=True)
class FoundRuns:
    """The runs among and below some folders, in the order of their paths. Each is there once, whatever its names."""

    sources: Sequence[Path]  # the folders
    ended: list[RunDirectory]  # complete or failed
    begun: list[RunDirectory]  # and not ended
    announced: list[RunDirectory]  # that a batch has not begun
    unreadable: list[str]  # a sentence for each folder that may not be read: there may be runs in it


Sources = Iterable[Path] | FoundRuns
"""Directories of runs, or with runs below them; or the runs that were found there before."""


def find_runs(sources: Sources) -> FoundRuns:
    """Return the runs among and below the given directories."""
    if isinstance(sources, FoundRuns):
        return sources
    found = FoundRuns([*sources], [], [], [], [])
    for source in found.sources:
        require_directory(source)
    try:
        walked = list(walk(found.sources, lambda error: found.unreadable.append(_unreadable(error))))
    except OSError as error:
        raise InputError(_unreadable(error)) from error
    for here, _, files in sorted(walked):
        if META in files:
            found.ended.append(RunDirectory(here))
        elif RUN.fullmatch(here.name):
            (found.begun if SCENARIO in files else found.announced).append(RunDirectory(here))
    return found


def _unreadable(error: OSError) -> str:
    return f"{error.filename}: cannot be read: {error.strerror}"


def complete_runs(
    sources: Sources,
    # called with a sentence for each run that is left out because a file of it is not what it was when the run ended,
    # or that may be in a folder that cannot be read. None: the first such run is an error.
    damaged: Callable[[str], None] | None = None,
) -> list[RunDirectory]:
    """Return the complete runs among and below the given directories, in the order of their paths."""
    found, runs = find_runs(sources), []
    problems = list(found.unreadable)
    if problems and damaged is None:
        raise InputError(problems[0])
    for run in found.ended:
        try:
            if run.state is RunState.COMPLETE:
                run.require_whole(digests=False)
                require_itself(run)
                runs.append(run)
        except InputError as error:
            if damaged is None:
                raise
            problems.append(str(error))
    if problems and not runs:
        raise InputError(f"{problems[0]} ({counted(len(problems), 'run')} of this kind)")
    if not runs:
        unfinished = [*found.ended, *found.begun]
        first = f"; not complete: {unfinished[0].path}: {unfinished[0].unfinished()}" if unfinished else ""
        more = f"; {len(unfinished) - 1} more" if len(unfinished) > 1 else ""
        raise InputError(f"no complete run in {', '.join(map(str, found.sources))}{first}{more}")
    if damaged is not None:
        for problem in problems:
            damaged(f"left out: {problem}")
    return runs


def unfinished(sources: Sources) -> dict[Path, str]:
    """Return why runs among and below the given directories have no results: they failed, or have not ended or begun.

    Damaged runs are not among them: ``complete_runs`` names those.
    """
    found, why = find_runs(sources), {}
    for run in found.ended:
        with suppress(RunDirectoryError):
            if run.state is not RunState.COMPLETE:
                why[run.path] = run.unfinished()
    why |= {run.path: run.unfinished() for run in found.begun}
    return why | {run.path: "not begun" for run in found.announced}


def incomplete(unfinished: Mapping[Path, str]) -> list[str]:
    """Return a line for each way in which runs are not complete, which counts them and names the first."""
    kinds: dict[str, list[Path]] = defaultdict(list)
    for path, why in unfinished.items():
        kinds[why.partition(":")[0]].append(path)
    return [
        f"left out: {counted(len(paths), 'run')} not complete, first {paths[0]}: {unfinished[paths[0]]}"
        for paths in kinds.values()
    ]
