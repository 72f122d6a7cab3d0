"""Callbacks of batches: one that remembers what it was told, and one for runs that must not fail."""

from collections.abc import Sequence
from typing import Any

from flmarket.core.errors import RunError
from scenarios.running.batch_run import Callback, Played, Run


class Observer(Callback):
    """Remembers what a batch told it: a word, the run, and the round or the error."""

    def __init__(self) -> None:
        self.notified: list[tuple[str, Run, Any]] = []

    def begin_batch(self, runs: Sequence[Run], complete: Sequence[Run], jobs: int | None) -> None:
        self.notified += [("skipped", run, None) for run in complete]

    def begin(self, run: Run, done: int) -> None:
        self.notified.append(("started", run, None))

    def after_round(self, run: Run, report: Played) -> None:
        self.notified.append(("round", run, report.round))

    def end(self, run: Run, error: RunError | None) -> None:
        self.notified.append(("completed", run, None) if error is None else ("failed", run, str(error)))

    def said(self, word: str) -> list[Any]:
        """Return what followed a word, each time it came."""
        return [more for kind, _, more in self.notified if kind == word]


class Strict(Callback):
    """Raises what a run fails with."""

    def end(self, run: Run, error: RunError | None) -> None:
        if error is not None:
            raise error
