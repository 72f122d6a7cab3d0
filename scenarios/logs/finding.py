"""Which runs there are below some folders: complete ones, failed ones, and those that were interrupted."""

from collections.abc import Iterable
from pathlib import Path

from fl.errors import InputError
from fl.files import find_below
from scenarios.logs.directory import META, SCENARIO, RunDirectory, State


def find_runs(sources: Iterable[Path]) -> list[RunDirectory]:
    """Return the run directories among and below the given directories, in the order of their paths.

    Raises:
        InputError: a source does not exist or is not a directory.
    """
    found: list[RunDirectory] = []
    for source in sources:
        try:
            if not source.is_dir():
                raise InputError(f"{source}: no such directory")
            found += (RunDirectory(path.parent) for path in find_below(source, META))
        except OSError as error:
            raise InputError(f"{source}: cannot be read: {error.strerror}") from error
    return list(dict.fromkeys(found))


def find_interrupted(sources: Iterable[Path]) -> list[RunDirectory]:
    """Return the directories among and below the given ones of runs that have begun and not ended, by their paths."""
    found = [path.parent for source in sources for path in find_below(source, SCENARIO)]
    begun = [path for path in found if path.name.startswith("seed-") and not (path / META).exists()]
    return [RunDirectory(path) for path in dict.fromkeys(begun)]


def complete_runs(sources: Iterable[Path]) -> list[RunDirectory]:
    """Return the complete runs among and below the given directories, in the order of their paths.

    Raises:
        InputError: there is none, a source does not exist or is not a directory, or a file of a complete run does not
            have the size that it had when the run ended.
    """
    sources = list(sources)
    found = find_runs(sources)
    runs = [run for run in found if run.state is State.COMPLETE]
    for run in runs:
        run.require_whole(digests=False)
    if not runs:
        unfinished = [*found, *find_interrupted(sources)]
        first = f"; not complete: {unfinished[0].path}: {unfinished[0].unfinished()}" if unfinished else ""
        more = f"; {len(unfinished) - 1} more" if len(unfinished) > 1 else ""
        raise InputError(f"no complete run in {', '.join(map(str, sources))}{first}{more}")
    return runs
