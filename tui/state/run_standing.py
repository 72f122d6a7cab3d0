"""The standing of a run in a directory: its state, its last round, its result. The one place that reads this.

A look costs a few calls of the system where nothing has changed since the one before, and reads the end of one table
and meta.json where something has: hundreds of runs can be looked at every second.
"""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from des.observation import Status
from flmarket.analysis.results.measures import final_accuracy
from flmarket.core.text import counted
from scenarios.logs.directory import LOG, META, SCENARIO, RunDirectory, RunDirectoryError
from scenarios.logs.reading import RunReader
from scenarios.logs.run_state import RunState

QUIET = 10.0  # seconds without a change after which a run that nothing plays counts as interrupted
FRESH = 60.0  # seconds after which what is empty is not waited for, if nothing is seen to play

_WATCHED = (META, "rounds.csv", LOG, SCENARIO)
_LAST_LINES = 4_000

Stamp = tuple[tuple[int, int, int] | None, ...]


def run_label(scenario: str, policy: str, seed: int | str) -> str:
    """Return the name of a run in lists and titles."""
    return f"{scenario} · {policy} · seed {seed}"


@dataclass(frozen=True, slots=True)
class RunStanding:
    """The standing of one run."""

    path: Path  # its directory
    state: RunState
    round: int = 0  # the last round that was played; 0 if none was
    accuracy: float | None = None  # of the whole market after it, as reports have it, %; None before the first round
    met: int = 0  # services that have met their targets
    services: int = 0  # how many services there are; 0 before the first round
    problem: str = ""  # why it failed, or what is wrong with its files, in a line
    begun: float = 0.0  # when it was begun, in seconds since the epoch; 0 if it was not
    changed: float = 0.0  # when its files last changed, likewise
    stamp: Stamp = ()  # times and sizes of the files that it was read from
    locked: bool = False  # whether a process held the run

    @property
    def result(self) -> str:
        """The number of services that have met their targets, in words; empty before the first round."""
        return f"{self.met} of {counted(self.services, 'target')}" if self.services else ""

    @property
    def policy(self) -> str:
        return self.path.parent.name

    @property
    def seed(self) -> str:
        return self.path.name.removeprefix("seed-").lstrip("0") or "0"

    @property
    def scenario(self) -> str:
        return scenario_name(self.folder)

    @property
    def folder(self) -> str:
        return self.path.parent.parent.name


def scenario_name(folder: str) -> str:
    """Return the scenario's name, given that of its folder, which ends with a hash for programs."""
    return folder.rpartition("-")[0] or folder


def standing(
    path: Path,  # the directory
    # how it stood at the last look, which need not be read again where no file has changed
    before: RunStanding | None = None,
) -> RunStanding:
    """Return how the run in a directory stands."""
    # A process that ends lets go of the lock last. So the lock is looked at first, and only where it may be held: for
    # the moment of the look, no other process can take it.
    if before is not None and before.state is RunState.COMPLETE and _stat(f"{path}/{META}") == before.stamp[0]:
        return before
    run = RunDirectory(path)
    stamp = _stamp(path)
    same = before is not None and before.stamp == stamp
    if before is not None and same and before.state not in {RunState.RUNNING, RunState.INCOMPLETE}:
        return before
    locked = stamp[-1] is not None and run.being_played()
    if before is not None and same and locked and before.locked:
        return before
    if before is not None and before.locked and not locked:
        stamp = _stamp(path)  # it has ended since the first look
    read = before if before is not None and before.stamp == stamp else _files(path, stamp)
    try:
        state, problem = _state(path, read.changed, locked=locked, was_locked=before is not None and before.locked)
    except RunDirectoryError as error:
        state, problem = RunState.UNREADABLE, str(error)
    return replace(read, state=state, problem=" ".join(problem.split()), locked=locked)


def state_of(path: Path) -> RunState:
    """Return the state of a run alone, without a look at its rounds; raise RunDirectoryError if it is unreadable."""
    return _state(path, _changed(_stamp(path)), locked=RunDirectory(path).being_played(), was_locked=False)[0]


def _state(path: Path, changed: float, *, locked: bool, was_locked: bool) -> tuple[RunState, str]:
    if locked:
        return RunState.RUNNING, ""
    run = RunDirectory(path)
    state = run.state
    if state is RunState.COMPLETE:
        run.require_whole(digests=False)
    elif state is RunState.FAILED:
        return state, str(run.meta().get("error") or "see run.log")
    elif state is RunState.INCOMPLETE:
        if not (path / SCENARIO).exists():
            raise RunDirectoryError(f"{path}: has no {SCENARIO}")
        if was_locked or time.time() - changed > QUIET:
            return RunState.INTERRUPTED, _last_failure(path / LOG)
    return state, ""


def _files(path: Path, stamp: Stamp) -> RunStanding:
    begun = stamp[-1][0] / 1e9 if stamp[-1] is not None else 0.0
    run = RunStanding(path, RunState.INCOMPLETE, begun=begun, changed=_changed(stamp), stamp=stamp)
    try:
        number, services = RunReader(path).last()
    except (OSError, ValueError):
        return run
    if not services:
        return run
    come = [row for row in services if row.status is not Status.WAITING] or services  # as in reports
    return replace(
        run,
        round=number,
        accuracy=float(final_accuracy([[row.test_accuracy for row in come]]).mean()),
        met=sum(row.status.gone for row in services),
        services=len(services),
    )


def _changed(stamp: Stamp) -> float:
    return max((file[0] / 1e9 for file in stamp if file is not None), default=0.0)


def _stamp(path: Path) -> Stamp:
    """Return time of change, size and number of each file; None for those that are not there."""
    return tuple(_stat(f"{path}/{name}") for name in _WATCHED)


def _stat(path: str) -> tuple[int, int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 - hundreds of times a second; a Path would cost more than the call
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _last_failure(log: Path) -> str:
    """Return what the log of a run that did not end says last, if that is a failure."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _LAST_LINES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return lines[-1].partition("failed: ")[2] if lines else ""
