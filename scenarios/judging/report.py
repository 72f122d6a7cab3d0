"""``flmarket report``: measures over seeds with their intervals, and what is compared, paired by seed.

Runs of two policies with the same scenario and seed met the same world, and so did runs of two points of a sweep as far
as its keys allow; differences are taken seed by seed. Intervals are t intervals (``learning.intervals``). The p-values
of a table's differences are corrected for how many there are, by Holm's method.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from flmarket.core.errors import InputError
from learning.intervals import Interval, holm, mean_interval, paired_interval
from learning.statistics import probability_of_improvement
from learning.time_to_target import RoundsToTarget
from scenarios.file.policy_choice import PolicyChoice
from scenarios.judging.measures import MARKET, MEASURES, ROUNDS_TO_TARGET, Measure, to_target, values
from scenarios.judging.results import RunResult
from scenarios.judging.setting import Setting

if TYPE_CHECKING:
    from scenarios.judging.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Estimate:
    """One measure of one policy for one service, over seeds."""

    setting: Setting  # the scenario, with its sweep values
    policy: str  # the runs' label
    service: str  # its name, or ``market``
    played: str  # the policy that played for the service; for the market, the label again
    measure: Measure
    seeds: int  # the number of runs
    interval: Interval  # the mean and its 95 % interval
    to_target: RoundsToTarget | None = None  # when the runs met the target, if that is the measure


@dataclass(frozen=True, slots=True)
class Difference:
    """A policy against the baseline, or a point of a sweep against the first one, paired by seed."""

    setting: Setting  # as in ``Estimate``, like the next three
    policy: str
    service: str
    measure: Measure
    seeds: int  # the number of seeds that both have
    interval: Interval  # mean of policy minus baseline, and its 95 % interval
    # probability that a run of the policy is better than one of the baseline; None where neither more nor less is
    # better
    improvement: float | None
    # the p-value of the interval's test, by Holm's method for all differences of the table in which it stands; NaN
    # where there is none
    adjusted: float = float("nan")
    # of rounds to target, where runs missed it, which count with their last round: ``<`` if the true difference is
    # below this one (the baseline missed it), ``>`` if it is above, ``?`` if both missed it
    bound: str = ""

    @property
    def holds(self) -> bool:
        """Whether it differs from 0 at 5 %, all differences of its table taken together."""
        return self.adjusted <= 0.05


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report shows."""

    runs: Sequence[RunResult]  # the runs it covers
    estimates: Sequence[Estimate]  # in the order in which they are shown
    differences: Sequence[Difference]  # in the order in which they are shown
    baseline: str | None  # the label of a policy, or None
    measures: Sequence[Measure] = MEASURES  # all that a run of it may have, in the order in which they are shown
    notes: Sequence[str] = ()  # what must be known beside the numbers, a sentence each
    # of sweeps, the market's measures at each further point against the first one, policies together
    points: Sequence[Difference] = ()


Scores = dict[int, float]  # values of a measure, by seed


def make_report(
    runs: Sequence[RunResult],  # as ``results.read`` returns them
    baseline: str | None = None,  # the policy that the others are compared with: its label, or ``NAME:CHECKPOINT``
    bounds: "Bounds | None" = None,  # of the runs, to be shown, too
) -> Report:
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
                interval = mean_interval(found).within(*measure.limits)
                met = to_target(members, service) if measure is ROUNDS_TO_TARGET else None
                estimates.append(
                    Estimate(first.setting, policy, service, played[service], measure, len(own), interval, met)
                )
                if shared := sorted(own.keys() & other.get(service, {}).keys()):
                    differences.append(_difference(measure, service, members, rivals, shared))
    if baseline is not None and not differences:
        raise InputError(f"--baseline {baseline}: no other policy was run with the same scenario and seed")
    tables = defaultdict(list)
    for row in differences:
        tables[str(row.setting.folder), row.service].append(row)
    corrected, points = list(_corrected(tables.values())), _points(groups.values(), measures)
    return Report(runs, estimates, corrected, baseline, measures, notes, points)


def _points(groups: Iterable[Sequence[RunResult]], measures: Sequence[Measure]) -> list[Difference]:
    """Return how each further point of a sweep differs from the first one for each policy."""
    sweeps: dict[tuple[str, str], list[Sequence[RunResult]]] = defaultdict(list)
    for members in groups:
        if members[0].setting.sweep:
            sweeps[members[0].setting.name, members[0].policy].append(members)
    found = []
    for first, *others in sweeps.values():
        table = []
        for members in others:
            for measure in measures:
                own, base = (_scores(runs, measure).get(MARKET, {}) for runs in (members, first))
                if measure.better and (shared := sorted(own.keys() & base.keys())):
                    table.append(_difference(measure, MARKET, members, first, shared))
        found.append(table)
    return list(_corrected(found))


def _corrected(tables: Iterable[Sequence[Difference]]) -> Iterable[Difference]:
    """Yield the differences of tables with their p-values adjusted within each."""
    for table in tables:
        judged = [row.interval.p if row.measure.better else float("nan") for row in table]  # the others are not shown
        for row, adjusted in zip(table, holm(judged), strict=True):
            yield replace(row, adjusted=adjusted)


def _scores(runs: Sequence[RunResult], measure: Measure) -> dict[str, Scores]:
    scores: dict[str, Scores] = defaultdict(dict)
    for run in runs:
        for service, value in values(run, measure).items():
            scores[service][run.seed] = value
    return scores


def _difference(
    measure: Measure, service: str, runs: Sequence[RunResult], base: Sequence[RunResult], seeds: Sequence[int]
) -> Difference:
    """Return how runs differ from those of the baseline, or of the first point, over the seeds that both have."""
    pair = [sorted((run for run in side if run.seed in seeds), key=lambda run: run.seed) for side in (runs, base)]
    own, other = (np.array([values(run, measure)[service] for run in side]) for side in pair)
    lowest, highest = measure.limits
    interval = paired_interval(own, other).within(lowest - highest, highest - lowest)
    improvement, bound = None, ""
    if measure.better:
        improvement = probability_of_improvement(measure.better * own, measure.better * other)
    if measure is ROUNDS_TO_TARGET:
        met, met_by_base = (bool(to_target(side, service).reached.all()) for side in pair)
        bound = {(True, True): "", (True, False): "<", (False, True): ">", (False, False): "?"}[met, met_by_base]
    setting, policy = runs[0].setting, runs[0].policy
    return Difference(setting, policy, service, measure, len(seeds), interval, improvement, bound=bound)
