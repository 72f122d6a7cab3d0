"""Results per service, as the closing table of ``flmarket run`` shows them: means over seeds, read from the logs."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from learning.targets import RoundsToTarget
from scenarios.judging.results import RunResult, read_runs
from scenarios.running.runner import Run


@dataclass(frozen=True, slots=True)
class ServiceSummary:
    """One service's results over the seeds of otherwise equal runs. All but ``to_target`` are means over the runs.

    Attributes:
        group: the scenario, with its sweep values, and the policy label of the runs.
        service, policy: the service, and the policy that played for it.
        seeds: the number of runs.
        accuracy: after the last round, in [0, 1].
        to_target: [seeds] when the target was met.
        spent: money spent in a run.
        served, refused: offers of a run that were and were not served.
    """

    group: str
    service: str
    policy: str
    seeds: int
    accuracy: float
    to_target: RoundsToTarget
    spent: float
    served: float
    refused: float


def summarise(runs: Iterable[Run]) -> list[ServiceSummary]:
    """Return one summary for each group of runs that differ in their seed alone, and each of their services.

    Raises:
        InputError: a log is not what it should be.
    """
    runs = list(runs)
    groups: dict[tuple[str, str, str], list[RunResult]] = defaultdict(list)
    for run, result in zip(runs, read_runs(run.directory for run in runs), strict=True):
        groups[str(result.setting.folder), run.policy, run.group].append(result)
    return [summary for (_, _, group), members in groups.items() for summary in _summarise(group, members)]


def _summarise(group: str, runs: list[RunResult]) -> list[ServiceSummary]:
    first = runs[0]
    to_target = RoundsToTarget.stack(run.to_target for run in runs)
    accuracy = np.mean([run.accuracy[-1] for run in runs], axis=0)
    spent, served, refused = np.mean(
        [[values.sum(axis=0) for values in (run.spent, run.served, run.refused)] for run in runs], axis=0
    )
    return [
        ServiceSummary(
            group=group,
            service=service,
            policy=first.policies[m],
            seeds=len(runs),
            accuracy=float(accuracy[m]),
            to_target=RoundsToTarget(to_target.rounds[:, m], to_target.reached[:, m]),
            spent=float(spent[m]),
            served=float(served[m]),
            refused=float(refused[m]),
        )
        for m, service in enumerate(first.setting.services)
    ]
