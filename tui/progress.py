"""How a batch is narrated on stderr: a live Rich display on a terminal, plain lines elsewhere."""

import time
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

from des.records import RoundReport, Status
from scenarios.runner import Run

PLAIN_INTERVAL = 5.0
"""Seconds between two lines of a run, where lines can't be redrawn."""


class QuietNarrator:
    """Says nothing but what failed."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def started(self, run: Run) -> None:
        """A run begins."""

    def round_done(self, run: Run, report: RoundReport) -> None:
        """A run finished a round."""

    def completed(self, run: Run) -> None:
        """A run finished."""

    def skipped(self, run: Run) -> None:
        """A run was complete already."""

    def failed(self, run: Run, error: Exception) -> None:
        """Say what failed and where the log is, at once."""
        self._line(f"{run.label}: failed: {error} (log: {run.directory.path / 'run.log'})", style="red")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


class PlainNarrator(QuietNarrator):
    """Writes a line when a run starts and ends, when a service leaves, and every few seconds between."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._last = self._start = 0.0

    def started(self, run: Run) -> None:
        """Say that a run begins."""
        self._last = self._start = time.monotonic()
        self._line(f"{run.label}: {run.scenario.rounds} rounds")

    def round_done(self, run: Run, report: RoundReport) -> None:
        """Say how far the run is, if something happened or some time has passed."""
        now = time.monotonic()
        if now - self._last < PLAIN_INTERVAL and not _leaving(report):
            return
        self._last = now
        left = (now - self._start) / report.round * (run.scenario.rounds - report.round)
        self._line(f"{run.label}: round {report.round}/{run.scenario.rounds}, {_accuracies(report)}, {left:.0f} s left")

    def completed(self, run: Run) -> None:
        """Say that a run finished."""
        self._line(f"{run.label}: complete in {time.monotonic() - self._start:.1f} s")

    def skipped(self, run: Run) -> None:
        """Say that a run was complete already."""
        self._line(f"{run.label}: complete already, skipped (--fresh runs it again)")


class LiveNarrator(QuietNarrator):
    """A bar for the batch and one for the run, with accuracies and the remaining time."""

    def __init__(self, console: Console, runs: int) -> None:
        super().__init__(console)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[accuracies]}"),
            console=console,
            transient=True,
        )
        self._batch = self._progress.add_task("runs", total=runs, accuracies="", visible=runs > 1)
        self._run: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, run: Run) -> None:
        """Show a bar for the run."""
        self._run = self._progress.add_task(run.label, total=run.scenario.rounds, accuracies="")

    def round_done(self, run: Run, report: RoundReport) -> None:
        """Move the run's bar."""
        if self._run is not None:
            self._progress.update(self._run, completed=report.round, accuracies=_accuracies(report))

    def completed(self, run: Run) -> None:
        """Move the batch's bar."""
        self._next()

    def skipped(self, run: Run) -> None:
        """Move the batch's bar, and say why nothing ran."""
        self._line(f"{run.label}: complete already, skipped (--fresh runs it again)")
        self._next()

    def failed(self, run: Run, error: Exception) -> None:
        """Say what failed, and go on."""
        super().failed(run, error)
        self._next()

    def _next(self) -> None:
        if self._run is not None:
            self._progress.remove_task(self._run)
            self._run = None
        self._progress.advance(self._batch)


def _accuracies(report: RoundReport) -> str:
    return ", ".join(f"{row.service} {100 * row.accuracy:.1f}%" for row in report.services)


def _leaving(report: RoundReport) -> bool:
    return any(row.status is Status.REACHED for row in report.services)
