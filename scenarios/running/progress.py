"""What follows a batch: its progress on stderr, bars on a terminal, plain lines elsewhere; trackers of experiments."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Self

from rich.console import Console

from des.money import MICRO
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import blame
from flmarket.core.rich_console import SafeConsole
from flmarket.core.text import counted, duration, spans
from flmarket.core.tracking import Step, counting, shown
from scenarios.logs.columns import ROUNDS
from scenarios.logs.directory import META, RunDirectory, RunDirectoryError
from scenarios.logs.reading import RunReader
from scenarios.running.batch_run import Callback, Played, Run


@contextmanager
def reporter(*, quiet: bool, silent: bool = False) -> "Iterator[Reporter]":
    """Return what reports a batch on stderr: if quiet, notes and failures alone; if silent, nothing."""
    console = SafeConsole(stderr=True, quiet=silent)
    live = console.is_terminal or console.is_jupyter
    with ExitStack() as stack:
        if not quiet:
            stack.enter_context(shown(live=live))
        yield Reporter(console, stack, quiet=quiet, live=live)


class Reporter(Callback):
    """Says what is played and what fails, and counts the rounds of each run and of all."""

    def __init__(self, console: Console, stack: ExitStack, *, quiet: bool, live: bool) -> None:
        self._console, self._stack = console, stack
        self._quiet, self._live = quiet, live
        self._begun: dict[Path, tuple[float, ExitStack, Step]] = {}
        self._done: dict[Path, int] = {}
        self._all: Step | None = None
        self.reasons: list[str] = []  # why runs failed, in the order in which they did

    def note(self, text: str) -> None:
        """Write what a user should know before believing the results."""
        self._line(f"note: {text}")

    def begin_batch(self, runs: Sequence[Run], complete: Sequence[Run], jobs: int | None) -> None:
        """Write what is skipped and what will be played, and how long that takes if earlier runs tell."""
        for run in complete:
            self._progress(f"{run.label}: already complete, skipped (the option fresh plays it again)")
        if not runs:
            return
        seeds, rounds = sorted({run.seed for run in runs}), sorted({run.scenario.rounds for run in runs})
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {spans(seeds)}"
        each = counted(rounds[0], "round") if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]} rounds"
        seconds = None if jobs is None or self._quiet else _expected(runs, jobs)
        about = "" if seconds is None else f", about {duration(seconds)}, going by earlier runs"
        self._progress(f"{counted(len(runs), 'run')}: {which}, {each}{about}")
        if len(runs) > 1:
            self._all = self._stack.enter_context(counting("all rounds", sum(run.scenario.rounds for run in runs)))

    def begin(self, run: Run, done: int) -> None:
        """Count the rounds of a run."""
        stack = self._stack.enter_context(ExitStack())
        step = stack.enter_context(counting(run.label, run.scenario.rounds))
        self._begun[run.directory.path] = time.monotonic(), stack, step
        self._count(run, done)

    def after_round(self, run: Run, report: Played) -> None:
        """Show how far the run is."""
        accuracies = ", ".join(f"{row.service} {100 * row.accuracy:.1f}%" for row in report.services)
        self._begun[run.directory.path][2](report.round, accuracies)
        self._count(run, report.round)

    def end(self, run: Run, error: RunError | None) -> None:
        """Report at once what failed and where the log is, and what is complete, where no bar shows it."""
        begun, stack, _ = self._begun.get(run.directory.path, (time.monotonic(), ExitStack(), None))
        stack.close()
        self._count(run, run.scenario.rounds)
        if error is not None:
            self.reasons.append(str(error))
            self._line(f"{run.label}: failed: {error} (log: {run.directory.path / 'run.log'})", style="red")
        elif not self._live:
            self._progress(f"{run.label}: complete in {time.monotonic() - begun:.1f} s")

    def slow(self, run: Run | None, text: str) -> None:
        """Report a policy that takes long, which may be for ever."""
        self._line(f"{run.label}: {text}" if run else text, style="yellow")

    def _count(self, run: Run, rounds: int) -> None:
        self._done[run.directory.path] = rounds
        if self._all is not None:
            self._all(sum(self._done.values()))

    def _progress(self, text: str) -> None:
        if not self._quiet:
            self._line(text)

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _expected(runs: Sequence[Run], jobs: int) -> float | None:
    """Return what runs will take as far as earlier ones tell: of each one's scenario and policy, with any seed."""
    with suppress(OSError, RunDirectoryError, KeyError, TypeError, ValueError):  # there are none, or they do not say
        took = {folder: fmean(islice(_seconds(folder), 5)) for folder in {run.directory.path.parent for run in runs}}
        return sum(took[run.directory.path.parent] for run in runs) / min(jobs, len(runs))
    return None


def _seconds(folder: Path) -> Iterator[float]:
    for at in folder.glob(f"seed-*/{META}"):
        if (meta := RunDirectory(at.parent).meta())["status"] == "complete":
            yield meta["wall_seconds"]


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


class Tracking(Callback):
    """Tells trackers of runs, from their files: a run in another process skips rounds."""

    def __init__(self, trackers: Sequence[Tracker], note: Callable[[str], None]) -> None:
        self._trackers, self._note = list(trackers), note
        self._open: dict[Path, tuple[Run, RunReader]] = {}  # runs that have begun, by their directories

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for run in [run for run, _ in self._open.values()]:
            self.end(run, RunError("interrupted"))

    def begin(self, run: Run, done: int) -> None:
        self._open[run.directory.path] = run, RunReader(run.directory.path)
        self._tell(lambda tracker: tracker.begin(run))

    def after_round(self, run: Run, report: Played) -> None:
        self._rounds(run)

    def end(self, run: Run, error: RunError | None) -> None:
        if run.directory.path not in self._open:  # it failed before it could begin
            self.begin(run, 0)
        if error is None:
            self._rounds(run)
        del self._open[run.directory.path]
        self._tell(lambda tracker: tracker.end(run, error))

    def _rounds(self, run: Run) -> None:
        _, reader = self._open[run.directory.path]
        for text in reader.grow(len(run.scenario.services), rounds_only=True):
            rows = [dict(zip(ROUNDS.names, row, strict=True)) for row in ROUNDS.read(text[ROUNDS.name])]
            number = rows[0]["round"]
            values = {
                f"{row['service']}/{column.name}": row[column.name] / (MICRO if column.type.exact else 1)
                for row in rows
                for column in ROUNDS.columns
                if column.type.dtype != "string" and column.name != "round" and row[column.name] is not None
            }
            self._tell(lambda tracker, number=number, values=values: tracker.round(run, number, values))  # type: ignore[misc]

    def _tell(self, what: Callable[[Tracker], None]) -> None:
        for tracker in list(self._trackers):
            try:
                what(tracker)
            except Exception as error:
                self._trackers.remove(tracker)
                self._note(f"{type(tracker).__name__} is told nothing more: {blame(error)}")
