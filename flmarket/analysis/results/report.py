"""``flmarket report``: measures over seeds with their intervals, and what is compared, paired by seed.

Runs of two policies with the same scenario and seed met the same world, and so did runs of two points of a sweep as far
as its keys allow; differences are taken seed by seed. Intervals are t intervals (``learning.statistics.intervals``).
The p-values of a table's differences are corrected for how many there are, by Holm's method.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from flmarket.analysis.results.measures import MARKET, MEASURES, ROUNDS_TO_TARGET, Measure, to_target, values
from flmarket.analysis.results.run_results import RunResult, by_policy, by_setting
from flmarket.analysis.results.setting import Setting
from flmarket.core.errors import InputError
from learning.statistics.area_under_curve import probability_of_improvement
from learning.statistics.intervals import Interval, holm, mean_interval, paired_interval
from learning.statistics.time_to_target import RoundsToTarget
from scenarios.file.policy_choice import PolicyChoice


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

    @property
    def text(self) -> str:
        """The mean with its interval, as tables show it."""
        interval = interval_text(self.measure, self.interval)
        if self.to_target is not None:
            return self.to_target.text(interval)
        return self.measure.text(self.interval.estimate) + interval


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

    @property
    def text(self) -> str:
        """The mean with its interval, as tables show it."""
        mark = f"{self.bound} " if self.bound else ""
        return mark + self.measure.text(self.interval.estimate, "+") + interval_text(self.measure, self.interval)


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report shows."""

    runs: Sequence[RunResult]  # the runs it covers
    estimates: Sequence[Estimate]  # in the order in which they are shown
    differences: Sequence[Difference]  # in the order in which they are shown
    baseline: str | None  # the label of a policy, or None
    measures: Sequence[Measure] = MEASURES  # all that a run of it may have, in the order in which they are shown
    notes: Sequence[str] = ()  # what must be known besides the numbers, a sentence each
    # of sweeps, the market's measures at each further point against the first one, policies together
    points: Sequence[Difference] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that differ in their seed alone."""

    runs: Sequence[RunResult]
    # of each measure, by its name: the values by service and seed
    scores: Mapping[str, Mapping[str, Mapping[int, float]]]

    @classmethod
    def of(cls, runs: Sequence[RunResult], measures: Sequence[Measure]) -> "Group":
        return cls(runs, {measure.name: _scores(runs, measure) for measure in measures})

    @property
    def setting(self) -> Setting:
        return self.runs[0].setting

    @property
    def policy(self) -> str:
        return self.runs[0].policy


def make_report(
    runs: Sequence[RunResult],  # as ``results.read`` returns them
    baseline: str | None = None,  # the policy that the others are compared with: its label, or ``NAME:CHECKPOINT``
    measures: Sequence[Measure] = MEASURES,
    notes: Sequence[str] = (),  # shown below the tables, a line each
) -> Report:
    if baseline is not None and ":" in baseline:
        baseline = PolicyChoice.parse(baseline).label
    groups = {
        (folder, policy): Group.of(own, measures)
        for folder, members in by_setting(runs).items()
        for policy, own in by_policy(members).items()
    }
    known = sorted({group.policy for group in groups.values()})
    if baseline is not None and baseline not in known:
        raise InputError(f"--baseline {baseline}: no run has that policy; choose from {', '.join(known)}")
    means = [row for group in groups.values() for row in estimates(group, measures)]
    tables: dict[tuple[Path, str], list[Difference]] = defaultdict(list)
    sweeps: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for (folder, policy), group in groups.items():
        base = groups.get((folder, baseline or ""))
        if base is not None and policy != baseline:
            for row in differences(group, base, measures):
                tables[folder, row.service].append(row)
        if group.setting.sweep:
            sweeps[group.setting.name, policy].append(group)
    if baseline is not None and not tables:
        raise InputError(f"--baseline {baseline}: no other policy was run with the same scenario and seed")
    judged = [measure for measure in measures if measure.better]
    points = [
        [row for other in others for row in differences(other, first, judged, MARKET)]
        for first, *others in sweeps.values()
    ]
    return Report(runs, means, _corrected(tables.values()), baseline, measures, notes, _corrected(points))


def _scores(runs: Sequence[RunResult], measure: Measure) -> Mapping[str, Mapping[int, float]]:
    scores: dict[str, dict[int, float]] = defaultdict(dict)
    for run in runs:
        for service, value in values(run, measure).items():
            scores[service][run.seed] = value
    return scores


def estimates(group: Group, measures: Sequence[Measure]) -> Iterator[Estimate]:
    """Yield the mean of each measure of runs, for each service and the market."""
    setting, policy = group.setting, group.policy
    played = dict(zip(setting.services, group.runs[0].policies, strict=True)) | {MARKET: policy}
    for measure in measures:
        for service, own in group.scores[measure.name].items():
            interval = mean_interval([*own.values()]).within(*measure.limits)
            met = to_target(group.runs, service) if measure is ROUNDS_TO_TARGET else None
            yield Estimate(setting, policy, service, played[service], measure, len(own), interval, met)


def differences(
    group: Group, base: Group, measures: Sequence[Measure], only: str | None = None
) -> Iterator[Difference]:
    """Yield how runs differ from those of the baseline, or of the first point, over the seeds that both have."""
    for measure in measures:
        own, other = group.scores[measure.name], base.scores[measure.name]
        for service in own if only is None else [only]:
            seeds = sorted(own.get(service, {}).keys() & other.get(service, {}).keys())
            if not seeds:
                continue
            first, second = (np.array([scores[service][seed] for seed in seeds]) for scores in (own, other))
            lowest, highest = measure.limits
            interval = paired_interval(first, second).within(lowest - highest, highest - lowest)
            improvement, bound = None, ""
            if measure.better:
                improvement = probability_of_improvement(measure.better * first, measure.better * second)
            if measure is ROUNDS_TO_TARGET:
                sides = ([run for run in side.runs if run.seed in seeds] for side in (group, base))
                met, met_by_base = (bool(to_target(side, service).reached.all()) for side in sides)
                bound = _BOUNDS[met, met_by_base]
            yield Difference(
                group.setting, group.policy, service, measure, len(seeds), interval, improvement, bound=bound
            )


_BOUNDS = {(True, True): "", (True, False): "<", (False, True): ">", (False, False): "?"}  # who reached the target


def interval_text(measure: Measure, interval: Interval) -> str:
    """Return an interval as it follows a mean; nothing for too few seeds."""
    return f" [{measure.text(interval.low)}, {measure.text(interval.high)}]" if interval.known else ""


def _corrected(tables: Iterable[Sequence[Difference]]) -> list[Difference]:
    """Return the differences of tables with their p-values adjusted within each."""
    found = []
    for table in tables:
        judged = [row.interval.p if row.measure.better else float("nan") for row in table]  # the others are not shown
        found += [replace(row, adjusted=adjusted) for row, adjusted in zip(table, holm(judged), strict=True)]
    return found
