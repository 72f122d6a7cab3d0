"""``flmarket report``: measures over seeds with their intervals, and policies against a baseline, paired by seed.

Intervals are 95 % percentile bootstrap intervals over seeds (10,000 resamples, drawn from a keyed stream, so that the
same runs always give the same report). Runs of two policies with the same scenario and seed met the same world; their
difference is taken seed by seed.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fl.errors import InputError
from learning.statistics import Interval, paired_bootstrap, probability_of_improvement
from learning.targets import RoundsToTarget
from scenarios.file.policy_choice import PolicyChoice
from scenarios.judging.bounds import Bounds
from scenarios.judging.measures import MARKET, MEASURES, ROUNDS_TO_TARGET, Measure, to_target, values
from scenarios.judging.results import RunResult, Setting


@dataclass(frozen=True, slots=True)
class Estimate:
    """One measure of one policy for one service, over seeds.

    Attributes:
        setting: the scenario, with its sweep values.
        policy: the runs' label.
        service: its name, or ``market``.
        played: the policy that played for the service; for the market, the label again.
        measure: the measure.
        seeds: the number of runs.
        interval: the mean and its 95 % interval.
        to_target: when the runs met the target, if that is the measure.
    """

    setting: Setting
    policy: str
    service: str
    played: str
    measure: Measure
    seeds: int
    interval: Interval
    to_target: RoundsToTarget | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A policy against the baseline, paired by seed.

    Attributes:
        setting, policy, service, measure: as in ``Estimate``.
        seeds: the number of seeds that both have.
        interval: mean of policy minus baseline, and its 95 % interval.
        improvement: probability that a run of the policy is better than one of the baseline; None where neither more
            nor less is better.
    """

    setting: Setting
    policy: str
    service: str
    measure: Measure
    seeds: int
    interval: Interval
    improvement: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report shows.

    Attributes:
        runs: the runs it covers.
        estimates, differences: in the order in which they are shown.
        baseline: the label of a policy, or None.
        measures: all that a run of it may have, in the order in which they are shown.
        notes: what must be known beside the numbers, a sentence each.
    """

    runs: Sequence[RunResult]
    estimates: Sequence[Estimate]
    differences: Sequence[Difference]
    baseline: str | None
    measures: Sequence[Measure] = MEASURES
    notes: Sequence[str] = ()


Scores = dict[int, float]
"""Values of a measure, by seed."""


def make_report(runs: Sequence[RunResult], baseline: str | None = None, bounds: Bounds | None = None) -> Report:
    """Return the report on runs.

    Args:
        runs: as ``results.read`` returns them.
        baseline: the policy that the others are compared with: its label, or ``NAME:CHECKPOINT``.
        bounds: of the runs, to be shown, too.

    Raises:
        InputError: no run has that policy, or none shares a scenario and seed with another policy.
    """
    if baseline is not None and ":" in baseline:
        baseline = PolicyChoice.parse(baseline).label
    groups: dict[tuple[str, str], list[RunResult]] = defaultdict(list)
    for run in runs:
        groups[str(run.setting.folder), run.policy].append(run)
    if baseline is not None and all(policy != baseline for _, policy in groups):
        known = sorted({policy for _, policy in groups})
        raise InputError(f"--baseline {baseline}: no run has that policy; choose from {', '.join(known)}")
    measures, notes = (MEASURES, []) if bounds is None else (bounds.measures, bounds.left_out(runs))
    estimates, differences = [], []
    for (folder, policy), members in groups.items():
        first = members[0]
        played = dict(zip(first.setting.services, first.policies, strict=True)) | {MARKET: policy}
        rivals = groups.get((folder, baseline), []) if baseline not in (None, policy) else []
        for measure in measures:
            scores = _scores(members, measure)
            other = _scores(rivals, measure)
            for service, own in scores.items():
                found = np.array(list(own.values()))
                interval = paired_bootstrap(found, np.zeros_like(found))
                met = to_target(members, service) if measure is ROUNDS_TO_TARGET else None
                estimates.append(
                    Estimate(first.setting, policy, service, played[service], measure, len(own), interval, met)
                )
                if shared := sorted(own.keys() & other.get(service, {}).keys()):
                    pair = [np.array([score[seed] for seed in shared]) for score in (own, other[service])]
                    differences.append(_difference(first.setting, policy, service, measure, *pair))
    if baseline is not None and not differences:
        raise InputError(f"--baseline {baseline}: no other policy was run with the same scenario and seed")
    return Report(runs, estimates, differences, baseline, measures, notes)


def _scores(runs: Sequence[RunResult], measure: Measure) -> dict[str, Scores]:
    """Return the values of a measure, by service and seed."""
    scores: dict[str, Scores] = defaultdict(dict)
    for run in runs:
        for service, value in values(run, measure).items():
            scores[service][run.seed] = value
    return scores


def _difference(
    setting: Setting, policy: str, service: str, measure: Measure, own: np.ndarray, other: np.ndarray
) -> Difference:
    improvement = None
    if measure.better:
        improvement = probability_of_improvement(measure.better * own, measure.better * other)
    interval = paired_bootstrap(own, other)
    return Difference(setting, policy, service, measure, len(own), interval, improvement)
