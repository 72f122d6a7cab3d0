"""What runs came to, per service, read from their logs: the closing table of ``flmarket run``."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from scenarios.running.runner import Run


@dataclass(frozen=True, slots=True)
class ServiceSummary:
    """One service's results over the seeds of otherwise equal runs. Money per run.

    Attributes:
        group: the scenario, with its sweep values, and the policy label of the runs.
        service, policy: the service, and the policy that played for it.
        seeds: runs that the means are over.
        accuracy: mean accuracy at the end, in [0, 1].
        reached: runs in which the target was met.
        rounds_to_target: mean over those, or None where there is none.
        spent: mean money spent in a run.
        served, refused: mean offers of a run that were and were not served.
    """

    group: str
    service: str
    policy: str
    seeds: int
    accuracy: float
    reached: int
    rounds_to_target: float | None
    spent: float
    served: float
    refused: float


def summarise(runs: Iterable[Run]) -> list[ServiceSummary]:
    """Return one summary for each group of runs that differ in their seed alone, and each of their services."""
    groups: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.directory.path.parent.parent.name, run.policy, run.group].append(run)
    return [summary for (_, _, group), members in groups.items() for summary in _summarise(group, members)]


def _summarise(group: str, runs: list[Run]) -> list[ServiceSummary]:
    tables = [pd.read_csv(run.directory.path / "rounds.csv").assign(seed=run.seed) for run in runs]
    logs = pd.concat(tables, ignore_index=True)
    summaries = []
    for (service, policy), rows in logs.groupby(["service", "policy"], sort=False):
        reached = rows.loc[rows["status"] == "reached", "round"]
        summaries.append(
            ServiceSummary(
                group=group,
                service=str(service),
                policy=str(policy),
                seeds=len(runs),
                accuracy=float(rows.groupby("seed")["accuracy"].last().mean()),
                reached=len(reached),
                rounds_to_target=float(reached.mean()) if len(reached) else None,
                spent=float(rows["spent"].sum()) / len(runs),
                served=float(rows["served"].sum()) / len(runs),
                refused=float(rows["refused"].sum()) / len(runs),
            )
        )
    return summaries
