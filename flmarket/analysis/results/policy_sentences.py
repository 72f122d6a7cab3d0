"""A report's comparisons in words, one sentence for each policy."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from flmarket.analysis.results.measures import MARKET, ROUNDS_TO_TARGET
from flmarket.analysis.results.report import Difference, Estimate, Report
from flmarket.analysis.results.setting import RunSetting
from learning.statistics import RoundsToTarget
from learning.statistics.intervals import Interval
from scenarios.file.differences import values_text

AUC = "AUC"


def sentences(report: Report, setting: RunSetting) -> Iterator[str]:
    """Yield a sentence for each policy of a setting, in the order of ``ranked``."""
    means = {(row.policy, row.measure.name): row for row in report.estimates if _of_market(row, setting)}
    base = means.get((report.baseline or "", ROUNDS_TO_TARGET.name))
    against = {(row.policy, row.measure.name): row for row in report.differences if _of_market(row, setting)}
    for policy in ranked(report, setting):
        met = means[policy, ROUNDS_TO_TARGET.name].to_target
        reached = f"{policy} {_reached(met)}"
        auc = means[policy, AUC]
        if (rounds := against.get((policy, ROUNDS_TO_TARGET.name))) and (area := against.get((policy, AUC))):
            against_it = _against(rounds, met, base, report.baseline)
            yield f"{reached}{against_it}; its AUC is {_higher(area)}."
        else:
            share = f"{auc.ends} %" if auc.interval.known else f" %{_ends(auc)}"
            yield f"{reached}; its AUC is {auc.mean()}{share}."


def sweep_sentences(
    report: Report,
    sweep: Sequence[Difference],  # of the whole market, at all further points of a sweep against the first one
) -> Iterator[str]:
    """Yield a sentence for each policy of a sweep: where its AUC is highest, and by how much."""
    means = {(row.policy, row.setting.folder): row for row in report.estimates if _is_auc(row)}
    for policy, rows in groupby(filter(_is_auc, sweep), key=lambda row: row.policy):
        against = {row.setting.folder: row for row in rows}
        family = next(iter(against.values())).setting.family
        # The first point, and those that share seeds with it.
        first, *others = (row for row in means.values() if (row.policy, row.setting.family) == (policy, family))
        points = [first, *(row for row in others if row.setting.folder in against)]
        top = max(points, key=lambda row: row.interval.estimate)
        low = min(points, key=lambda row: row.interval.estimate)
        said = f"{policy} has its highest AUC at {_point(top)}: {top.mean()} %"
        if top is not first:
            yield f"{said}, {_beyond(against[top.setting.folder], 'above')} the first point, {_point(first)}."
        elif low is not first:
            yield f"{said}; the lowest, at {_point(low)}, is {_beyond(against[low.setting.folder], 'below')} it."
        else:
            yield f"{policy} has the same AUC at all points: {top.mean()} %."


def _beyond(row: Difference, where: str) -> str:
    clearly = row.interval.excludes_zero or not row.interval.known
    return f"{_amount(row)} points {where}" if clearly else f"({_signed(row)} points) not clearly {where}"


def effect_sentences(effects: Sequence[Difference]) -> Iterator[str]:
    """Yield a sentence for each policy of a sweep of several keys: how each key changes its AUC, the strongest first.

    Of the values of a key, that with the largest effect is named.
    """
    for policy, rows in groupby(filter(_is_auc, effects), key=lambda row: row.policy):
        strongest: dict[str, Difference] = {}
        for row in sorted(rows, key=lambda row: -abs(row.interval.estimate)):
            strongest.setdefault(next(iter(row.setting.sweep)), row)
        found = (f"{_signed(row)} points from {row.setting.label}" for row in strongest.values())
        yield f"Averaged over the other keys, {policy}'s AUC changes by {'; by '.join(found)}."


def _is_auc(row: Estimate) -> bool:
    return row.service == MARKET and row.measure.name == AUC


def _point(row: Estimate) -> str:
    return values_text(row.setting.sweep)


def ranked(report: Report, setting: RunSetting) -> list[str]:
    """Return the policies of a setting, the one with the highest mean AUC of the market first."""
    found = {
        row.policy: row.interval.estimate
        for row in report.estimates
        if _of_market(row, setting) and row.measure.name == AUC
    }
    return sorted(found, key=lambda policy: -found[policy])


def _of_market(row: Estimate, setting: RunSetting) -> bool:
    return row.setting.folder == setting.folder and row.service == MARKET


def _reached(met: RoundsToTarget | None) -> str:
    assert met is not None  # noqa: S101 - every estimate of rounds to target has it
    count, size = int(met.reached.sum()), met.reached.size
    if count == size:
        return "reaches every target"
    return f"reaches {count} of {size} targets" if count else "reaches no target"


def _against(row: Difference, met: RoundsToTarget | None, base: Estimate | None, baseline: str | None) -> str:
    """Return how soon targets are met against the baseline; only what both meet can be met sooner."""
    assert met is not None  # noqa: S101 - as above
    assert base is not None  # noqa: S101 - there is a difference from it
    assert base.to_target is not None  # noqa: S101
    some = base.to_target.reached.any()
    if not met.reached.any():
        return f" ({baseline} {_reached(base.to_target)})" if some else f", nor does {baseline}"
    return f", {_apart(row, baseline)}" if some else f", of which {baseline} reaches none"


def _apart(row: Difference, baseline: str | None) -> str:
    """Return how many rounds before or after the baseline targets are met."""
    estimate = row.interval.estimate
    counted = " (targets that were missed count with the last round)" if row.bound else ""
    if not estimate and not row.interval.low < 0 < row.interval.high:
        return f"in the same rounds as {baseline}{counted}"
    if row.interval.known and not row.interval.excludes_zero:
        return f"not clearly before or after {baseline} ({_signed(row)} rounds){counted}"
    when, further = ("before", "<") if estimate < 0 else ("after", ">")
    least, counted = ("at least ", "") if row.bound == further else ("", counted)
    return f"{least}{_amount(row)} rounds {when} {baseline}{counted}"


def _higher(row: Difference) -> str:
    if not row.interval.estimate:
        return "the same"
    if row.interval.known and not row.interval.excludes_zero:
        return f"not clearly different ({_signed(row)} points)"
    return f"{_amount(row)} points {'higher' if row.interval.estimate > 0 else 'lower'}"


def _signed(row: Estimate) -> str:
    return row.measure.text(row.interval.estimate, "+") + _ends(row)


def _amount(row: Difference) -> str:
    """Return a difference, or its opposite if that is the positive one."""
    it = row.interval
    positive = it if it.estimate > 0 else Interval(-it.estimate, -it.high, -it.low, it.p)
    return row.measure.text(positive.estimate) + _ends(replace(row, interval=positive))


def _ends(row: Estimate) -> str:
    return row.ends or f" (n = {row.seeds}: no interval)"
