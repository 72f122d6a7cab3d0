"""The runs of a folder in an order, in groups of those that differ in their seed alone, and in leagues of policies."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from flmarket.analysis.results.measures import PERCENT
from learning.statistics.intervals import Interval, mean_interval
from scenarios.logs.run_state import RunState
from tui.state.batch_folder import RunLine, time_left
from tui.state.run_standing import Standing

Order = Callable[[RunLine], Any]


def _by_name(run: RunLine) -> tuple[Any, ...]:
    seed = run.standing.seed
    return run.standing.folder, run.standing.policy, int(seed) if seed.isdigit() else 0, run.standing.path


def _by_state(run: RunLine) -> Any:
    return list(RunState).index(run.standing.state)


def _by_left(run: RunLine) -> Any:
    return run.left is None, run.left or 0.0


def _by_accuracy(run: RunLine) -> Any:
    return -(run.standing.accuracy or 0.0)


def _by_change(run: RunLine) -> Any:
    return -run.standing.changed


ORDERS: dict[str, Order] = {
    "scenario and policy": _by_name,
    "state": _by_state,
    "time left": _by_left,
    "accuracy": _by_accuracy,
    "last change": _by_change,
}
"""The orders of runs, by their names; runs that are equal in one are in the order of the first."""


def ordered(runs: Iterable[RunLine], order: str) -> list[RunLine]:
    return sorted(sorted(runs, key=_by_name), key=ORDERS[order])


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that differ in their seed alone."""

    runs: tuple[RunLine, ...]  # at least one

    @property
    def first(self) -> Standing:
        return self.runs[0].standing

    @property
    def key(self) -> Path:
        return self.first.path.parent

    @property
    def states(self) -> Counter[RunState]:
        return Counter(run.standing.state for run in self.runs)

    @property
    def complete(self) -> list[Standing]:
        return [run.standing for run in self.runs if run.standing.state is RunState.COMPLETE]

    @property
    def accuracy(self) -> float | None:
        """The mean final accuracy of the complete runs, %; None if there is none."""
        found = [run.accuracy for run in self.complete if run.accuracy is not None]
        return fmean(found) if found else None

    @property
    def met(self) -> float | None:
        """The targets that a complete run met, in the mean; None if there is none."""
        return fmean(run.met for run in self.complete) if self.complete else None

    @property
    def rounds(self) -> tuple[int, int | None]:
        """The rounds that were played, and how many all runs have at most; None where that is not known."""
        todo = [run.standing.round if run.standing.state is RunState.COMPLETE else run.rounds for run in self.runs]
        known = [rounds for rounds in todo if rounds is not None]
        return sum(run.standing.round for run in self.runs), sum(known) if len(known) == len(todo) else None

    @property
    def left(self) -> float | None:
        """Seconds until those that play or wait have ended, at most; None where that is not known."""
        return time_left(self.runs)


def grouped(runs: Sequence[RunLine]) -> list[RunGroup]:
    """Return the groups of runs, in the order of their first runs."""
    found: dict[Path, list[RunLine]] = {}
    for run in runs:
        found.setdefault(run.standing.path.parent, []).append(run)
    return [RunGroup(tuple(members)) for members in found.values()]


@dataclass(frozen=True, slots=True)
class Place:
    """A policy's place among those of a scenario."""

    group: RunGroup  # its runs
    accuracies: tuple[float, ...]  # the final accuracy of each complete run, %
    # of their mean; None where there is none yet. It follows from the others, and may have ends that are no numbers.
    interval: Interval | None = field(compare=False)


def leagues(runs: Sequence[RunLine]) -> Mapping[Path, Sequence[Place]]:
    """Return the league of each scenario, by its folder."""
    found: dict[Path, list[Place]] = {}
    for group in grouped(runs):
        accuracies = tuple(run.accuracy for run in group.complete if run.accuracy is not None)
        interval = mean_interval(accuracies).within(*PERCENT) if accuracies else None
        found.setdefault(group.key.parent, []).append(Place(group, accuracies, interval))
    for places in found.values():
        places.sort(key=lambda place: -(place.interval.estimate if place.interval else 0.0))
    return found
