"""The policies of each scenario of a folder, the best first, with intervals over the seeds that are complete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flmarket.analysis.results.measures import PERCENT
from learning.statistics.intervals import Interval, mean_interval
from tui.state.batch_folder import RunLine
from tui.state.batch_groups import RunGroup, grouped


@dataclass(frozen=True, slots=True)
class Place:
    """A policy's place among those of a scenario."""

    group: RunGroup  # its runs
    accuracies: tuple[float, ...]  # the final accuracy of each complete run, %
    interval: Interval | None  # of their mean; None where there is none yet


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
