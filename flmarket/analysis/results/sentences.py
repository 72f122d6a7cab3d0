"""A report's comparisons in words, one sentence for each policy."""

from collections.abc import Iterator

from flmarket.analysis.results.measures import MARKET, ROUNDS_TO_TARGET
from flmarket.analysis.results.report import Difference, Estimate, Report
from flmarket.analysis.results.setting import Setting
from learning.statistics.intervals import Interval
from learning.statistics.time_to_target import RoundsToTarget

AUC = "AUC"


def sentences(report: Report, setting: Setting) -> Iterator[str]:
    """Yield a sentence for each policy of a setting, in the order of ``ranked``."""
    means = {(row.policy, row.measure.name): row for row in report.estimates if _of_market(row, setting)}
    against = {(row.policy, row.measure.name): row for row in report.differences if _of_market(row, setting)}
    for policy in ranked(report, setting):
        reached = f"{policy} {_reached(means[policy, ROUNDS_TO_TARGET.name].to_target)}"
        auc = means[policy, AUC]
        if (rounds := against.get((policy, ROUNDS_TO_TARGET.name))) and (area := against.get((policy, AUC))):
            yield f"{reached}, {_apart(rounds, report.baseline)}; its AUC is {_higher(area)}."
        else:
            digits = auc.measure.digits
            ends = _ends(auc.interval, auc.seeds, digits)
            share = f"{ends} %" if auc.interval.known else f" %{ends}"
            yield f"{reached}; its AUC is {auc.interval.estimate:.{digits}f}{share}."


def ranked(report: Report, setting: Setting) -> list[str]:
    """Return the policies of a setting, the one with the highest mean AUC of the market first."""
    found = {
        row.policy: row.interval.estimate
        for row in report.estimates
        if _of_market(row, setting) and row.measure.name == AUC
    }
    return sorted(found, key=lambda policy: -found[policy])


def _of_market(row: Estimate | Difference, setting: Setting) -> bool:
    return row.setting.folder == setting.folder and row.service == MARKET


def _reached(met: RoundsToTarget | None) -> str:
    assert met is not None  # noqa: S101 - every estimate of rounds to target has it
    count, size = int(met.reached.sum()), met.reached.size
    if count == size:
        return "reaches every target"
    return f"reaches {count} of {size} targets" if count else "reaches no target"


def _apart(row: Difference, baseline: str | None) -> str:
    """Return how many rounds before or after the baseline targets are met."""
    estimate, digits = row.interval.estimate, row.measure.digits
    counted = " (targets that were missed count with the last round)" if row.bound else ""
    if not estimate:
        return f"in the same rounds as {baseline}{'' if row.bound == '?' else counted}"
    if row.interval.known and not row.interval.excludes_zero:
        ends = _ends(row.interval, row.seeds, digits)
        return f"not clearly before or after {baseline} ({estimate:+.{digits}f}{ends} rounds){counted}"
    when, further = ("before", "<") if estimate < 0 else ("after", ">")
    least, counted = ("at least ", "") if row.bound == further else ("", counted)
    rounds = f"{abs(estimate):.{digits}f}{_ends(_positive(row.interval), row.seeds, digits)} rounds"
    return f"{least}{rounds} {when} {baseline}{counted}"


def _higher(row: Difference) -> str:
    estimate, digits = row.interval.estimate, row.measure.digits
    if not estimate:
        return "the same"
    if row.interval.known and not row.interval.excludes_zero:
        return f"not clearly different ({estimate:+.{digits}f}{_ends(row.interval, row.seeds, digits)} points)"
    which = "higher" if estimate > 0 else "lower"
    return f"{abs(estimate):.{digits}f}{_ends(_positive(row.interval), row.seeds, digits)} points {which}"


def _positive(interval: Interval) -> Interval:
    """Return the interval of the opposite difference if that is the positive one."""
    if interval.estimate > 0:
        return interval
    return Interval(-interval.estimate, -interval.high, -interval.low, interval.level, interval.p)


def _ends(interval: Interval, seeds: int, digits: int) -> str:
    """Return an interval as it follows a mean, or that there is none."""
    if interval.known:
        return f" [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
    return f" (n = {seeds}: no interval)"
