"""Observers of a batch's progress while it runs: the command line's display, and tests."""

from collections.abc import Sequence
from typing import Protocol

from des.log_records import ServiceReport
from scenarios.running.runner import Run


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
