"""``flmarket report``: measures over seeds with their intervals, and what is compared, paired by seed.

Runs of two policies with the same scenario and seed met the same world, and so did runs of two points of a sweep as far
as its keys allow; differences are taken seed by seed. Intervals are t intervals (``learning.statistics.intervals``).
The p-values of a table's differences are corrected for how many there are, by Holm's method.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path

import numpy as np

from flmarket.analysis.results.measures import MEASURES, TO_TARGET, to_target
from flmarket.analysis.results.run_results import RunResult, by_policy, by_setting, compared_by
from flmarket.analysis.results.setting import RunSetting
from flmarket.core.errors import InputError
from learning.statistics import RoundsToTarget, probability_of_improvement
from learning.statistics.intervals import Interval, holm, mean_interval, paired_interval
from learning.statistics.measure import MARKET, Measure, MeasureError
from scenarios.file.differences import values_text
from scenarios.file.policy_choice import PolicyChoice
from scenarios.logs.directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Estimate:
    """One measure of one policy for one service, over seeds."""

    setting: RunSetting  # the scenario, with its sweep values
    policy: str  # the runs' label
    service: str  # its name, or ``market``
    played: str  # the policy that played for the service; for the market, that of the label
    measure: Measure
    seeds: int  # the number of runs
    interval: Interval  # the mean and its 95 % interval
    to_target: RoundsToTarget | None = None  # when the runs met the target, if that is measured
    left_out: int = 0  # the number of runs of the policy that failed, or have not ended or begun

    @property
    def ends(self) -> str:
        """The interval as it follows a mean; nothing for too few seeds."""
        low, high = self.measure.text(self.interval.low), self.measure.text(self.interval.high)
        return f" [{low}, {high}]" if self.interval.known else ""

    def mean(self, ends: str = "") -> str:
        """Return the mean as text, with these ends; that of a time to target is marked where it is a lower bound."""
        if self.to_target is not None:
            return self.to_target.text(ends)
        return self.measure.text(self.interval.estimate) + ends

    @property
    def text(self) -> str:
        """The mean with its interval, as tables show it."""
        return self.mean(self.ends)


@dataclass(frozen=True, slots=True)
class Difference(Estimate):
    """A policy against the baseline, or a point of a sweep against the first one, over the seeds that both have."""

    # probability that a run of the policy is better than one of the baseline; None where neither more nor less is
    # better
    improvement: float | None = None
    # the p-value of the interval's test, by Holm's method for all differences of the table in which it stands; NaN
    # where there is none
    adjusted: float = nan
    # of times to target, where runs missed it, which count with their last round: ``<`` if the true difference is
    # below this one (the baseline missed it), ``>`` if it is above, ``?`` if both missed it
    bound: str = ""

    @property
    def holds(self) -> bool:
        """Whether it differs from 0 at 5 %, all differences of its table taken together."""
        return self.adjusted <= 0.05

    @property
    def text(self) -> str:
        """The mean with its interval, as tables show it."""
        return f"{self.bound} {self.measure.text(self.interval.estimate, '+')}{self.ends}".lstrip()


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report shows."""

    runs: Sequence[RunResult]  # the runs it covers
    estimates: Sequence[Estimate]  # in the order in which they are shown
    differences: Sequence[Difference]  # in the order in which they are shown
    baseline: str | None  # the label of a policy, or a value of the key that is compared; or None
    measures: Sequence[Measure] = MEASURES  # all that a run of it may have, in the order in which they are shown
    notes: Sequence[str] = ()  # what must be known besides the numbers, a sentence each
    shown: Sequence[str] = ()  # of the tables, those in whose titles one of these stands; all if there is none
    by: str = "policy"  # what is compared; a key takes the place of the policy in all that is here
    # of sweeps, the market's measures at each further point against the first one, policies together
    points: Sequence[Difference] = ()
    # of sweeps of several keys, the market's measures at each further value of a key against its first one, averaged
    # over the values of the other keys, in the order of the sweep; the setting of each has the one value alone, and is
    # labelled KEY=FIRST to VALUE
    effects: Sequence[Difference] = ()
    failures: Sequence[str] = ()  # why measures of plug-ins are left out, a line each
    asked_for: Collection[str] = ()  # the names of measures that tables show first

    @property
    def compared(self) -> Sequence[Difference]:
        return [*self.differences, *self.points, *self.effects]


@dataclass(frozen=True, slots=True)
class SeedGroup:
    """Runs that differ in their seed alone."""

    runs: Sequence[RunResult]
    scores: Mapping[str, Mapping[str, Mapping[int, float]]]  # by measure, service and seed
    left_out: int = 0  # see ``Estimate``
    failures: Mapping[str, str] = field(default_factory=dict)  # why measures of plug-ins have no scores, by their names

    @classmethod
    def of(cls, runs: Sequence[RunResult], measures: Sequence[Measure], left_out: int = 0) -> "SeedGroup":
        scores: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        failures: dict[str, str] = {}
        for measure in measures:
            try:
                for run in runs:
                    for service, value in measure.values(run).items():
                        scores[measure.name][service][run.seed] = value
            except MeasureError as error:
                failures[measure.name] = str(error)
        return cls(runs, scores, left_out, failures)

    @property
    def setting(self) -> RunSetting:
        return self.runs[0].setting

    @property
    def policy(self) -> str:
        return self.runs[0].policy


def estimates(group: SeedGroup, measures: Sequence[Measure]) -> Iterator[Estimate]:
    """Yield the mean of each measure of runs, for each service and the market."""
    setting, policy = group.setting, group.policy
    played = dict(zip(setting.services, group.runs[0].policies, strict=True)) | {MARKET: policy}
    for measure in measures:
        scores = group.scores[measure.name]
        for service in (it for it in played if it in scores):  # one that comes under few seeds keeps its place
            by_seed = scores[service]
            interval = mean_interval([*by_seed.values()]).within(*measure.limits)
            met = to_target(group.runs, service, measure.name) if measure.name in TO_TARGET else None
            seeds = len(by_seed)
            yield Estimate(setting, policy, service, played[service], measure, seeds, interval, met, group.left_out)


def differences(
    group: SeedGroup, base: SeedGroup, measures: Sequence[Measure], only: str | None = None
) -> Iterator[Difference]:
    """Yield how runs differ from those of the baseline, or of the first point, over the seeds that both have."""
    setting, policy = group.setting, group.policy
    for measure in measures:
        of_group, of_base = group.scores[measure.name], base.scores[measure.name]
        for service in of_group if only is None else [only]:
            seeds = sorted(of_group.get(service, {}).keys() & of_base.get(service, {}).keys())
            if not seeds:
                continue
            first, second = (np.array([scores[service][seed] for seed in seeds]) for scores in (of_group, of_base))
            lowest, highest = measure.limits
            interval = paired_interval(first, second).within(lowest - highest, highest - lowest)
            improvement, bound = None, ""
            if measure.better:
                improvement = probability_of_improvement(measure.better * first, measure.better * second)
            if measure.name in TO_TARGET:
                bound = _bound(group, base, service, seeds, measure.name)
            yield Difference(
                setting, policy, service, policy, measure, len(seeds), interval, improvement=improvement, bound=bound
            )


def main_effects(groups: Sequence[SeedGroup], measures: Sequence[Measure]) -> Iterator[Difference]:
    """Yield the main effects of a sweep's keys, of groups of one policy; none where less than two keys vary."""
    # by the key, its value, and the values of the others
    by_key: dict[str, dict[str, dict[str, SeedGroup]]] = defaultdict(lambda: defaultdict(dict))
    for group in groups:
        for key, value in group.setting.sweep.items():
            others = sorted((other, at) for other, at in group.setting.sweep.items() if other != key)
            by_key[key][repr(value)][repr(others)] = group
    varied = {key: list(values.values()) for key, values in by_key.items() if len(values) > 1}
    for key, (first, *further) in varied.items() if len(varied) > 1 else ():
        for points in further:
            if shared := points.keys() & first.keys():
                changed, base = (
                    _averaged([side[others] for others in side if others in shared]) for side in (points, first)
                )
                before, value = ({key: side.setting.sweep[key]} for side in (base, changed))
                label = f"{values_text(before)} to {values_text(value).removeprefix(f'{key}=')}"
                setting = replace(changed.setting, sweep=value, label=label)
                yield from (replace(it, setting=setting) for it in differences(changed, base, measures, MARKET))


def _averaged(groups: Sequence[SeedGroup]) -> SeedGroup:
    """Return groups as one, whose scores of the market are means over them, of the seeds that all of them have."""
    scores: dict[str, dict[str, dict[int, float]]] = {}
    for measure in groups[0].scores:
        of_groups = [group.scores[measure].get(MARKET, {}) for group in groups]
        seeds = set(of_groups[0]).intersection(*of_groups)
        scores[measure] = {MARKET: {seed: float(np.mean([of_group[seed] for of_group in of_groups])) for seed in seeds}}
    return SeedGroup([run for group in groups for run in group.runs], scores)


def _bound(group: SeedGroup, base: SeedGroup, service: str, seeds: Sequence[int], measure: str) -> str:
    sides = ([run for run in side.runs if run.seed in seeds] for side in (group, base))
    met, met_by_base = (bool(to_target(side, service, measure).reached.all()) for side in sides)
    return {(True, True): "", (True, False): "<", (False, True): ">", (False, False): "?"}[met, met_by_base]


def make_report(
    runs: Sequence[RunResult],  # as ``run_results.read`` returns them
    baseline: str | None = None,  # the policy that the others are compared with: its label, or ``NAME:CHECKPOINT``
    measures: Sequence[Measure] = MEASURES,
    notes: Sequence[str] = (),  # shown in front of the tables, a line each
    by: str | None = None,  # the key whose values are compared in place of policies, with a value as the baseline
    unfinished: Iterable[Path] = (),  # the directories of runs of the same batches that have no results
) -> Report:
    if by is not None:
        runs = compared_by(runs, by)
    elif baseline is not None and ":" in baseline:
        baseline = PolicyChoice.parse(baseline).label
    left_out = Counter((run.folder, run.path.parent.name) for run in map(RunDirectory, unfinished))
    groups = {
        (folder, policy): SeedGroup.of(of_policy, measures, left_out[folder, policy])
        for folder, members in by_setting(runs).items()
        for policy, of_policy in by_policy(members).items()
    }
    failed = {name: why for group in reversed(groups.values()) for name, why in group.failures.items()}
    measures = [measure for measure in measures if measure.name not in failed]
    failures = [f"left out: {why}" for why in failed.values()]
    known = sorted({group.policy for group in groups.values()})
    if baseline is not None and baseline not in known:
        raise InputError(f"baseline {baseline!r}: no run has that {by or 'policy'}; choose from {', '.join(known)}")
    tables: dict[tuple[Path, str], list[Difference]] = defaultdict(list)
    sweeps: dict[tuple[str, str], list[SeedGroup]] = defaultdict(list)  # by family and policy
    paired = False
    for (folder, policy), group in groups.items():
        base = groups.get((folder, baseline or ""))
        if base is not None and policy != baseline:
            paired |= not {run.seed for run in base.runs}.isdisjoint(run.seed for run in group.runs)
            for row in differences(group, base, measures):
                tables[folder, row.service].append(row)
        if group.setting.sweep:
            sweeps[group.setting.family, policy].append(group)
    if baseline is not None and not paired:
        raise InputError(f"baseline {baseline!r}: no other {by or 'policy'} was run with the same scenario and seed")
    judged = [measure for measure in measures if measure.better]
    points = [
        [row for other in others for row in differences(other, first, judged, MARKET)]
        for first, *others in sweeps.values()
    ]
    effects = [list(main_effects(of_policy, judged)) for of_policy in sweeps.values()]
    means = [row for group in groups.values() for row in estimates(group, measures)]
    compared = _corrected(tables.values()), _corrected(points), _corrected(effects)
    return Report(runs, means, compared[0], baseline, measures, notes, (), by or "policy", *compared[1:], failures)


def _corrected(tables: Iterable[Sequence[Difference]]) -> list[Difference]:
    """Return the differences of tables with their p-values adjusted within each."""
    corrected = []
    for table in tables:
        judged = [row.interval.p if row.measure.better else nan for row in table]  # the others are not shown
        corrected += [replace(row, adjusted=adjusted) for row, adjusted in zip(table, holm(judged), strict=True)]
    return corrected
