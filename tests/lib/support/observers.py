"""Observers of batches: one that remembers what it was told, and one for runs that must not fail."""

from collections.abc import Sequence
from typing import Any

from des.log_records import ServiceReport
from scenarios.running.observer import RunObserver
from scenarios.running.runner import Run


class Observer(RunObserver):
    """Remembers what a batch told it: a word, the run, and the round or the error."""

    def __init__(self) -> None:
        self.notified: list[tuple[str, Run, Any]] = []

    def started(self, run: Run) -> None:
        self.notified.append(("started", run, None))

    def progressed(self, run: Run, round_: int, services: Sequence[ServiceReport]) -> None:
        self.notified.append(("round", run, round_))

    def completed(self, run: Run) -> None:
        self.notified.append(("completed", run, None))

    def skipped(self, run: Run) -> None:
        self.notified.append(("skipped", run, None))

    def failed(self, run: Run, error: Exception) -> None:
        self.notified.append(("failed", run, str(error)))

    def said(self, word: str) -> list[Any]:
        """Return what followed a word, each time it came."""
        return [more for kind, _, more in self.notified if kind == word]


class Strict(RunObserver):
    """Raises what a run fails with."""

    def failed(self, run: Run, error: Exception) -> None:
        raise error
