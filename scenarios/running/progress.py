"""How the progress of a batch is reported on stderr: a live Rich display on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from fl.console import SafeConsole
from fl.counting import counted
from scenarios.running.observer import Progress as RunProgress
from scenarios.running.runner import Run

PLAIN_INTERVAL = 5.0
"""Seconds between two lines of a run, where lines cannot be redrawn."""


@contextmanager
def reporter(
    runs: int, *, quiet: bool, silent: bool = False, words: Callable[[str], str] = str
) -> "Iterator[QuietReporter]":
    """Return what reports a batch on stderr, in the way that suits where stderr goes.

    Args:
        runs: how many there are.
        quiet: report failures only.
        silent: report nothing.
        words: puts a line into the words of whoever reads it; see ``fl.words``.
    """
    console = SafeConsole(stderr=True, quiet=silent)
    if quiet or silent:
        yield QuietReporter(console, words)
    elif console.is_terminal or console.is_jupyter:
        with LiveReporter(console, runs, words) as live:
            yield live
    else:
        yield PlainReporter(console, words)


class QuietReporter:
    """Reports failures, and what may never end.

    Attributes:
        reasons: why runs failed, in the order in which they did.
    """

    def __init__(self, console: Console, words: Callable[[str], str] = str) -> None:
        self._console, self._words = console, words
        self.reasons: list[str] = []

    def note(self, text: str) -> None:
        """Write what a user should know before believing the results."""
        self._line(f"note: {text}")

    def started(self, run: Run) -> None:
        """A run begins."""

    def round_done(self, run: Run, progress: RunProgress) -> None:
        """A run finished a round."""

    def completed(self, run: Run) -> None:
        """A run finished."""

    def skipped(self, run: Run) -> None:
        """A run was already complete."""

    def failed(self, run: Run, error: Exception) -> None:
        """Report at once what failed and where the log is."""
        self.reasons.append(str(error))
        self._line(f"{run.label}: failed: {error} (log: {run.directory.path / 'run.log'})", style="red")

    def slow(self, run: Run | None, what: str) -> None:
        """Report a policy that takes long, which may be for ever."""
        self._line(f"{run.label}: {what}" if run else what, style="yellow")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(self._words(text), style=style, markup=False, highlight=False, soft_wrap=True)


class PlainReporter(QuietReporter):
    """Writes a line when a run starts and ends, when a service leaves, and every few seconds between."""

    def __init__(self, console: Console, words: Callable[[str], str] = str) -> None:
        super().__init__(console, words)
        self._begun: dict[Path, float] = {}
        self._reported: dict[Path, float] = {}
        self._first: dict[Path, int] = {}  # the first round that was played here; a resumed run has earlier ones

    def started(self, run: Run) -> None:
        """Write that a run begins."""
        self._begun[run.directory.path] = self._reported[run.directory.path] = time.monotonic()
        self._line(f"{run.label}: {counted(run.scenario.rounds, 'round')}")

    def round_done(self, run: Run, progress: RunProgress) -> None:
        """Write how far the run is, if a service left or some time has passed."""
        now, key = time.monotonic(), run.directory.path
        played = progress.round - self._first.setdefault(key, progress.round) + 1
        if now - self._reported[key] < PLAIN_INTERVAL and not progress.leaving:
            return
        self._reported[key] = now
        left = (now - self._begun[key]) / played * (run.scenario.rounds - progress.round)
        self._line(
            f"{run.label}: round {progress.round}/{run.scenario.rounds}, {_accuracies(progress)}, {left:.0f} s left"
        )

    def completed(self, run: Run) -> None:
        """Write that a run finished."""
        self._line(f"{run.label}: complete in {time.monotonic() - self._begun[run.directory.path]:.1f} s")

    def skipped(self, run: Run) -> None:
        """Write that a run was already complete."""
        self._line(f"{run.label}: already complete, skipped (--fresh runs it again)")


class LiveReporter(QuietReporter):
    """A bar for the batch and one for each run under way, with accuracies and the remaining time."""

    def __init__(self, console: Console, runs: int, words: Callable[[str], str] = str) -> None:
        super().__init__(console, words)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[accuracies]}", markup=False),
            console=console,
            transient=True,
        )
        self._batch = self._progress.add_task("runs", total=runs, accuracies="", visible=runs > 1)
        self._bars: dict[Path, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, run: Run) -> None:
        """Show a bar for the run."""
        bar = self._progress.add_task(run.label, total=run.scenario.rounds, accuracies="")
        self._bars[run.directory.path] = bar

    def round_done(self, run: Run, progress: RunProgress) -> None:
        """Move the run's bar."""
        bar = self._bars[run.directory.path]
        self._progress.update(bar, completed=progress.round, accuracies=_accuracies(progress))

    def completed(self, run: Run) -> None:
        """Move the batch's bar."""
        self._next(run)

    def skipped(self, run: Run) -> None:
        """Move the batch's bar, and write why nothing ran."""
        self._line(f"{run.label}: already complete, skipped (--fresh runs it again)")
        self._next(run)

    def failed(self, run: Run, error: Exception) -> None:
        """Report what failed, and move the batch's bar."""
        super().failed(run, error)
        self._next(run)

    def _next(self, run: Run) -> None:
        if (bar := self._bars.pop(run.directory.path, None)) is not None:
            self._progress.remove_task(bar)
        self._progress.advance(self._batch)


def _accuracies(progress: RunProgress) -> str:
    return ", ".join(f"{service} {100 * accuracy:.1f}%" for service, accuracy in progress.accuracies.items())
