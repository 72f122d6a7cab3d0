"""Observers of a batch's progress while it runs: the command line's display, trackers of experiments, and tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from des.log_records import ServiceReport
from des.money import MICRO
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import blame
from scenarios.logs.columns import ROUNDS
from scenarios.running.runner import Run

if TYPE_CHECKING:
    from scenarios.running.progress import Reporter


class RunObserver(Protocol):
    """Notified of a batch's progress. Called from one thread; several runs may be under way."""

    def begins(self, runs: Sequence[Run], jobs: int | None) -> None:
        """Runs are about to be played, so many at a time; None: not known."""

    def started(self, run: Run) -> None:
        """A run begins."""

    def progressed(self, run: Run, round_: int, services: Sequence[ServiceReport]) -> None:
        """A run has played so many rounds, and how its services stand after the last."""

    def completed(self, run: Run) -> None:
        """A run finished."""

    def skipped(self, run: Run) -> None:
        """A run was complete already."""

    def failed(self, run: Run, error: Exception) -> None:
        """A run failed; the batch continues."""

    def slow(self, run: Run | None, what: str) -> None:
        """A policy takes long to return; the run is None before the first one starts."""


class Tracker:
    """Follows the runs that a batch plays, round by round, whatever plays them: ``flmarket.run(..., trackers=[...])``.

    A tracker of your own overrides what it needs. It is called in the process of the batch, from one thread; several
    runs may be under way. The batch waits for it. One that raises an exception is told nothing more, and harms no run.
    """

    def begin(self, run: Run) -> None:
        """Begin to follow a run, which has a ``label``, a ``scenario``, a ``policy``, a ``seed`` and a ``directory``.

        A run that is resumed is told from its first round. One that is complete already is not played, nor told.
        """

    def round(self, run: Run, number: int, values: Mapping[str, float]) -> None:
        """Take the numbers of rounds.csv in a round, from 1, as ``SERVICE/COLUMN``: ``mnist/accuracy``."""

    def end(self, run: Run, error: Exception | None) -> None:
        """Take the end of a run, which is complete if there is no ``error``."""


class Tracking:
    """An observer that also tells trackers, from the runs' files: a run in another process skips rounds."""

    def __init__(self, shown: "Reporter", trackers: Sequence[Tracker]) -> None:
        self._shown, self._trackers = shown, list(trackers)
        self._read: dict[Path, int] = {}  # bytes of rounds.csv that trackers know of, by a run's directory
        self._open: dict[Path, Run] = {}  # runs that have begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for run in list(self._open.values()):
            self._end(run, RunError("interrupted"))

    def begins(self, runs: Sequence[Run], jobs: int | None) -> None:
        self._shown.begins(runs, jobs)

    def started(self, run: Run) -> None:
        self._shown.started(run)
        self._read[run.directory.path], self._open[run.directory.path] = len(ROUNDS.header), run
        self._tell(lambda tracker: tracker.begin(run))

    def progressed(self, run: Run, round_: int, services: Sequence[ServiceReport]) -> None:
        self._shown.progressed(run, round_, services)
        self._rounds(run)

    def completed(self, run: Run) -> None:
        self._rounds(run)
        self._end(run, None)
        self._shown.completed(run)

    def skipped(self, run: Run) -> None:
        self._shown.skipped(run)

    def failed(self, run: Run, error: Exception) -> None:
        self._end(run, error)
        self._shown.failed(run, error)

    def slow(self, run: Run | None, what: str) -> None:
        self._shown.slow(run, what)

    def _rounds(self, run: Run) -> None:
        at = run.directory.path
        with ROUNDS.path(at).open("rb") as file:
            file.seek(self._read[at])
            lines = file.read().splitlines(keepends=True)
        services = len(run.scenario.services)
        whole = len(lines) // services * services
        self._read[at] += sum(map(len, lines[:whole]))
        rows = [dict(zip(ROUNDS.names, row, strict=True)) for row in ROUNDS.read(b"".join(lines[:whole]).decode())]
        for place in range(0, whole, services):
            number = rows[place]["round"]
            values = {
                f"{row['service']}/{column.name}": row[column.name] / (MICRO if column.type.exact else 1)
                for row in rows[place : place + services]
                for column in ROUNDS.columns
                if column.type.dtype != "string" and column.name != "round" and row[column.name] is not None
            }
            self._tell(lambda tracker, number=number, values=values: tracker.round(run, number, values))  # type: ignore[misc]

    def _end(self, run: Run, error: Exception | None) -> None:
        del self._open[run.directory.path]
        self._tell(lambda tracker: tracker.end(run, error))

    def _tell(self, what: Callable[[Tracker], None]) -> None:
        for tracker in list(self._trackers):
            try:
                what(tracker)
            except Exception as error:
                self._trackers.remove(tracker)
                self._shown.note(f"{type(tracker).__name__} is told nothing more: {blame(error)}")
