"""Results per service, as the closing table of ``flmarket run`` shows them: means over seeds, read from the logs.

The numbers are those of ``flmarket report`` (``flmarket.analysis.results.measures``), and are rounded as they are
there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from flmarket.analysis.results.measures import MEASURES, to_target, values
from flmarket.analysis.results.run_results import RunResult, read_runs
from learning.statistics.time_to_target import RoundsToTarget
from scenarios.running.runner import Run

SHOWN = tuple(measure for measure in MEASURES if measure.name in ("final accuracy", "spent", "served", "refused"))
"""The measures of the table, besides the rounds to target."""


@dataclass(frozen=True, slots=True)
class ServiceSummary:
    """One service's results over the seeds of otherwise equal runs."""

    group: str  # the scenario, with its sweep values, and the policy label of the runs
    service: str
    policy: str  # the one that played for the service
    seeds: int  # the number of runs
    to_target: RoundsToTarget  # [seeds] when the target was met
    means: Mapping[str, float]  # the mean of each measure in ``SHOWN`` over the runs, by its name


def summarise(runs: Iterable[Run]) -> list[ServiceSummary]:
    """Return one summary for each group of runs that differ in their seed alone, and each of their services."""
    runs = list(runs)
    groups: dict[tuple[str, str, str], list[RunResult]] = defaultdict(list)
    for run, result in zip(runs, read_runs(run.directory for run in runs), strict=True):
        groups[str(result.setting.folder), run.policy, run.group].append(result)
    return [summary for (_, _, group), members in groups.items() for summary in _summarise(group, members)]


def _summarise(group: str, runs: list[RunResult]) -> list[ServiceSummary]:
    scores = {measure.name: [values(run, measure) for run in runs] for measure in SHOWN}
    return [
        ServiceSummary(
            group=group,
            service=service,
            policy=runs[0].policies[m],
            seeds=len(runs),
            to_target=to_target(runs, service),
            means={name: float(np.mean([score[service] for score in found])) for name, found in scores.items()},
        )
        for m, service in enumerate(runs[0].setting.services)
    ]
