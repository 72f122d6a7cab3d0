"""Observers of a batch's progress while it runs: the command line's display, and tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from des.log_records import RoundReport
from scenarios.running.runner import Run


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run; small enough to come from another process in every round."""

    round: int  # the last one that was played
    accuracies: Mapping[str, float]  # the services' accuracies in [0, 1], in the scenario's order

    @classmethod
    def of(cls, report: RoundReport) -> "Progress":
        """Return the progress that a round's report shows."""
        return cls(report.round, {row.service: row.accuracy for row in report.services})


class RunObserver(Protocol):
    """Notified of a batch's progress. Called from one thread; several runs may be under way."""

    def begins(self, runs: Sequence[Run], jobs: int | None) -> None:
        """Runs are about to be played, so many at a time; None: not known."""

    def started(self, run: Run) -> None:
        """A run begins."""

    def round_done(self, run: Run, progress: Progress) -> None:
        """A run finished a round."""

    def completed(self, run: Run) -> None:
        """A run finished."""

    def skipped(self, run: Run) -> None:
        """A run was complete already."""

    def failed(self, run: Run, error: Exception) -> None:
        """A run failed; the batch continues."""

    def slow(self, run: Run | None, what: str) -> None:
        """A policy takes long to return; the run is None before the first one starts."""
