"""The progress of a batch, reported on stderr: bars on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from statistics import fmean

from rich.console import Console

from des.log_records import ServiceReport
from flmarket.core.console import SafeConsole
from flmarket.core.counting import counted, duration, spans
from flmarket.core.tracking import Step, counting, shown
from scenarios.logs.directory import META, RunDirectory, RunDirectoryError
from scenarios.running.runner import Run


@contextmanager
def reporter(*, quiet: bool, silent: bool = False) -> "Iterator[Reporter]":
    """Return what reports a batch on stderr: if quiet, notes and failures alone; if silent, nothing."""
    console = SafeConsole(stderr=True, quiet=silent)
    live = console.is_terminal or console.is_jupyter
    with ExitStack() as stack:
        if not quiet:
            stack.enter_context(shown(live=live))
        yield Reporter(console, stack, quiet=quiet, live=live)


class Reporter:
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

    def begins(self, runs: Sequence[Run], jobs: int | None) -> None:
        """Write what will be played, and how long that takes if earlier runs tell."""
        seeds, rounds = sorted({run.seed for run in runs}), sorted({run.scenario.rounds for run in runs})
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {spans(seeds)}"
        each = counted(rounds[0], "round") if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]} rounds"
        seconds = None if jobs is None or self._quiet else _expected(runs, jobs)
        about = "" if seconds is None else f", about {duration(seconds)}, going by earlier runs"
        self._progress(f"{counted(len(runs), 'run')}: {which}, {each}{about}")
        if len(runs) > 1:
            self._all = self._stack.enter_context(counting("all rounds", sum(run.scenario.rounds for run in runs)))

    def started(self, run: Run) -> None:
        """Count the rounds of a run."""
        stack = self._stack.enter_context(ExitStack())
        step = stack.enter_context(counting(run.label, run.scenario.rounds))
        self._begun[run.directory.path] = time.monotonic(), stack, step

    def progressed(self, run: Run, round_: int, services: Sequence[ServiceReport]) -> None:
        """Show how far the run is."""
        accuracies = ", ".join(f"{row.service} {100 * row.accuracy:.1f}%" for row in services)
        self._begun[run.directory.path][2](round_, accuracies)
        self._count(run, round_)

    def completed(self, run: Run) -> None:
        """Write that a run finished, where no bar shows it."""
        begun = self._over(run)
        if not self._live:
            self._progress(f"{run.label}: complete in {time.monotonic() - begun:.1f} s")

    def skipped(self, run: Run) -> None:
        """Write that a run was already complete."""
        self._progress(f"{run.label}: already complete, skipped (the option fresh plays it again)")

    def failed(self, run: Run, error: Exception) -> None:
        """Report at once what failed and where the log is."""
        self._over(run)
        self.reasons.append(str(error))
        self._line(f"{run.label}: failed: {error} (log: {run.directory.path / 'run.log'})", style="red")

    def slow(self, run: Run | None, what: str) -> None:
        """Report a policy that takes long, which may be for ever."""
        self._line(f"{run.label}: {what}" if run else what, style="yellow")

    def _over(self, run: Run) -> float:
        begun, stack, _ = self._begun[run.directory.path]
        stack.close()
        self._count(run, run.scenario.rounds)
        return begun

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
