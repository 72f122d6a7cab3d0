"""Directories of the runs that a batch will play, made before the first begins, so that all are in sight.

An empty directory is no run (``State.ABSENT``). If the batch ends early, it stays, and the same command fills it.
"""

from collections.abc import Iterable

from scenarios.logs.directory import RunDirectory


def announce(runs: Iterable[RunDirectory]) -> None:
    """Make the directories of runs, as far as that is possible; a run that cannot be written says so itself."""
    for run in runs:
        try:
            run.path.mkdir(parents=True, exist_ok=True)
        except OSError:
            return
