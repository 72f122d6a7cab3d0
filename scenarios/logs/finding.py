"""The runs below some folders: complete ones, failed ones, and those that were interrupted."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from glob import escape
from pathlib import Path

from flmarket.core.counting import counted
from flmarket.core.errors import InputError
from flmarket.core.files import find_below
from scenarios.logs.directory import META, SCENARIO, RunDirectory, RunDirectoryError
from scenarios.logs.run_state import RunState


def require_directory(place: Path) -> None:
    """Raise an InputError if a place is not a directory: a run's, or one with runs below it.

    Pages write ``...`` for what differs from run to run, and readers copy it. Where it stands for something, the error
    says what.
    """
    if place.is_dir():
        return
    if place.exists():
        raise InputError(f"{place}: is a file; name the directory of a run, or a folder with runs in it")
    meant: list[Path] = []
    if "..." in str(place):
        pattern = re.sub(r"\.{3,}", "*", escape(str(place.relative_to(place.anchor))))  # not "**", which is recursive
        meant = sorted(path for path in Path(place.anchor).glob(pattern) if path.is_dir())
    raise InputError(f"{place}: no such directory" + (f"; did you mean {meant[0]}?" if meant else ""))


def find_runs(sources: Iterable[Path]) -> list[RunDirectory]:
    """Return the run directories among and below the given directories, in the order of their paths."""
    found: list[RunDirectory] = []
    for source in sources:
        try:
            require_directory(source)
            found += (RunDirectory(path.parent) for path in find_below(source, META))
        except OSError as error:
            raise InputError(f"{source}: cannot be read: {error.strerror}") from error
    return list(dict.fromkeys(found))


def find_interrupted(sources: Iterable[Path]) -> list[RunDirectory]:
    """Return the directories among and below the given ones of runs that have begun and not ended, by their paths."""
    found = [path.parent for source in sources for path in find_below(source, SCENARIO)]
    begun = [path for path in found if path.name.startswith("seed-") and not (path / META).exists()]
    return [RunDirectory(path) for path in dict.fromkeys(begun)]


def complete_runs(
    sources: Iterable[Path],  # the directories
    # called with a sentence for each run that is left out because a file of it is not what it was when the run ended.
    # None: the first such run is an error.
    damaged: Callable[[str], None] | None = None,
) -> list[RunDirectory]:
    """Return the complete runs among and below the given directories, in the order of their paths."""
    sources = list(sources)
    found, runs, problems = find_runs(sources), [], []
    for run in found:
        try:
            if run.state is RunState.COMPLETE:
                run.require_whole(digests=False)
                runs.append(run)
        except RunDirectoryError as error:
            if damaged is None:
                raise
            problems.append(str(error))
    if not runs:
        if problems:
            raise InputError(f"{problems[0]} ({counted(len(problems), 'run')} of this kind)")
        unfinished = [*found, *find_interrupted(sources)]
        first = f"; not complete: {unfinished[0].path}: {unfinished[0].unfinished()}" if unfinished else ""
        more = f"; {len(unfinished) - 1} more" if len(unfinished) > 1 else ""
        raise InputError(f"no complete run in {', '.join(map(str, sources))}{first}{more}")
    if damaged is not None:
        for problem in problems:
            damaged(f"left out: {problem}")
    return runs


def incomplete(sources: Iterable[Path]) -> list[str]:
    """Return a line that counts the runs that failed or have not ended, and names the first; none if there are none.

    Damaged runs are not counted: ``complete_runs`` names them. Errors as in ``find_runs``.
    """
    sources, found = list(sources), []
    for run in find_runs(sources):
        with suppress(RunDirectoryError):
            if run.state is not RunState.COMPLETE:
                found.append(run)
    found += find_interrupted(sources)
    if not found:
        return []
    return [f"left out: {counted(len(found), 'run')} not complete, first {found[0].path}: {found[0].unfinished()}"]
