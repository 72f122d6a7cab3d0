"""A report's tables, what they come to in sentences, and what must be known to read them; see ``report_formats``."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from flmarket.analysis.results.measures import AUC, PERCENT, ROUNDS_TO_TARGET, SECONDS_TO_TARGET
from flmarket.analysis.results.report import Difference, Estimate, Report
from flmarket.analysis.results.run_results import mixed
from flmarket.analysis.results.setting import RunSetting
from flmarket.core.errors import InputError
from flmarket.core.text import counted
from flmarket.core.text_table import TextTable
from learning.policy import POLICIES
from learning.statistics import RoundsToTarget
from learning.statistics.intervals import FEWEST, Interval
from learning.statistics.measure import MARKET, Measure
from scenarios.file.differences import values_text

DECIDING = (
    AUC.name, "final accuracy", "rounds to target", SECONDS_TO_TARGET.name, "spent",
    *(f"{dqi} {what}" for dqi in ("DQI", "union DQI") for what in ("served", "bound ratio")),
)  # fmt: skip
"""The measures that tables show first, with those that are asked for."""


@dataclass(frozen=True, slots=True)
class Part:
    """A table of a report."""

    setting: RunSetting | None  # whose first table it is; None for the others
    table: TextTable  # the deciding measures
    more: TextTable | None  # the other measures; None if there are none
    heading: str = ""  # of what begins with it: a sweep or a scenario
    answers: Sequence[str] = ()  # what that comes to, a sentence each


def introduction(report: Report) -> list[str]:
    """Return what must be known to read the tables, one paragraph each."""
    count = counted(len(report.runs), "run")
    text = [
        f"{count}. Means over seeds with 95 % t intervals; fewer than {FEWEST} seeds have none. "
        "A service that left keeps its accuracy and reward until the last round."
    ]
    if any((run.arrivals > 1).any() for run in report.runs):
        text.append(
            "A service that arrives later than in the first round counts from its arrival: its rounds to target, and "
            "the rounds that AUC and normalised reward are means of."
        )
    if absent := [int((~run.came).sum()) for run in report.runs if not run.came.all()]:
        text.append(
            f"{counted(sum(absent), 'service')} of {counted(len(absent), 'run')} never took part, as the run was over "
            "before they arrived: they are left out, also of the means of the market, where any took part."
        )
    trained = [run for run in report.runs if run.setting.backend.trains]
    if trained:
        where = "Accuracies" if len(trained) == len(report.runs) else "Where models are trained, accuracies"
        text.append(f"{where} are measured on test images.")
    if split := [run for run in trained if run.setting.scenario.split]:
        others = "" if len(split) == len(trained) else "; in scenarios without these, on test images, too"
        text[-1] += f" Targets, exits and rewards go by the accuracy on validation images, which no client has{others}."
    if report.baseline:
        text.append(
            f"Differences are {report.by} minus {report.baseline}, paired by seed; P is the probability that a run of "
            f"the {report.by} is better than one of {report.baseline}."
        )
    if report.points:
        text.append(
            "Points of a sweep are compared with its first one, paired by seed; P is the probability that a run of the "
            "point is better than one of the first."
        )
    missed = any(row.to_target is not None and not row.to_target.reached.all() for row in report.estimates)
    if missed or any(row.bound for row in report.compared):
        text.append(f"Rounds to target: {ROUNDS_TO_TARGET.meaning}.")
    if any(row.interval.known for row in report.compared):
        text.append(
            "† marks a difference from 0 that holds at 5 % for all differences of its table together (paired t tests, "
            "Holm's correction)."
        )
    text += [*mixed(report.runs), *report.notes]
    if any(_privileged(row.played) for row in report.estimates):
        text.append("Policies marked * see what the paper hides from services.")
    return text


def tables(report: Report) -> Iterator[Part]:
    """Yield the tables that are shown, the first one of a sweep or scenario with its heading."""
    begun, label, any_shown = None, "", False
    for part in _tables(report):
        if part.heading:
            begun, label = part, part.heading
        if not report.shown or any(it.casefold() in f"{label}: {part.table.title}".casefold() for it in report.shown):
            if begun is not None:
                part = replace(part, setting=begun.setting, heading=begun.heading, answers=begun.answers)
            begun, any_shown = None, True
            yield part
    if report.shown and not any_shown:
        titles = dict.fromkeys(part.table.title for part in _tables(report))
        raise InputError(f"{', '.join(report.shown)}: no table is called so; choose from {'; '.join(titles)}")


def _tables(report: Report) -> Iterator[Part]:
    """Yield the tables: first those of sweeps, then setting by setting, policies in the order of their AUC."""
    yield from _sweeps(report)
    for _, rows in groupby(report.estimates, key=lambda row: row.setting.folder):
        estimates = list(rows)
        setting = estimates[0].setting
        order = {policy: place for place, policy in enumerate(ranked(report, setting))}
        estimates.sort(key=lambda row: order[row.policy])
        differences = [row for row in report.differences if row.setting.folder == setting.folder and row.measure.better]
        differences.sort(key=lambda row: order[row.policy])
        for service in dict.fromkeys([MARKET, *(row.service for row in estimates)]):
            of_service = [row for row in estimates if row.service == service]
            title = "Whole market" if service == MARKET else f"Service {service}"
            part = _part(title, of_service, report, report.by)
            if service == MARKET:
                answers = list(sentences(report, setting))
                part = replace(part, setting=setting, heading=setting.label, answers=answers)
            yield part
            if against := [row for row in differences if row.service == service]:
                yield _part(f"{title}, against {report.baseline}", against, report, report.by)


def _sweeps(report: Report) -> Iterator[Part]:
    """Yield the tables of sweeps: a row for each point, and what the points come to in front of the first table."""
    for name in dict.fromkeys(row.setting.family for row in report.points):
        sweep = [row for row in report.points if row.setting.family == name]
        effects = [row for row in report.effects if row.setting.family == name]
        heading, answers = f"Sweep of {name}", [*sweep_sentences(report, sweep), *effect_sentences(effects)]
        for policy, points in groupby(sweep, key=lambda row: row.policy):
            title = f"Sweep of {name}, {report.by} {policy}: whole market"
            means = [
                row
                for row in report.estimates
                if (row.setting.family, row.policy, row.service) == (name, policy, MARKET)
            ]
            part = _part(title, means, report, "point", lambda row: row.setting.label)
            yield replace(part, heading=heading, answers=answers)
            heading, answers = "", []
            against = f"{title}, against the first point"
            yield _part(against, list(points), report, "point", lambda row: row.setting.label)
            if of_policy := [row for row in effects if row.policy == policy]:
                against = f"{title}, effect of each key, averaged over the others"
                yield _part(against, of_policy, report, "key", lambda row: row.setting.label)


def _part(
    title: str,
    rows: Sequence[Estimate],
    report: Report,
    head: str = "policy",
    named: Callable[[Estimate], str] | None = None,  # returns a row's name; policies, if not given
) -> Part:
    """Return a table in two: the measures that decide, and the others."""
    first = {*DECIDING, *report.asked_for}
    few = [measure for measure in report.measures if measure.name in first]
    others = [measure for measure in report.measures if measure.name not in first]
    more = _table(f"{title}, more measures", rows, others, head, named or _named)
    return Part(None, _table(title, rows, few, head, named or _named), more if len(more.header) > 2 else None)


def _table(
    title: str,
    rows: Sequence[Estimate],
    measures: Sequence[Measure],  # in the order of the columns
    head: str,  # what names a row of the table
    named: Callable[[Estimate], str],
) -> TextTable:
    present = {row.measure.name for row in rows}
    columns = [measure.name for measure in measures if measure.name in present]
    lines: dict[str, dict[str, Estimate]] = {}
    for row in rows:
        lines.setdefault(named(row), {})[row.measure.name] = row
    cells = [
        [label, _seeds(next(iter(line.values()))), *(_cell(line[name]) if name in line else "" for name in columns)]
        for label, line in lines.items()
    ]
    return TextTable(title, [head, "seeds", *columns], cells)


def _cell(row: Estimate) -> str:
    if not isinstance(row, Difference):
        return row.text
    mark = "†" if row.holds else ""
    return f"{row.text}{mark}" + ("" if row.improvement is None else f" P {row.improvement:.2f}")


def _seeds(row: Estimate) -> str:
    count = f"{row.seeds} of {row.seeds + row.left_out}" if row.left_out else f"{row.seeds}"
    return count if row.seeds == 1 or row.interval.known else f"{count} (no interval)"


def _named(row: Estimate) -> str:
    """Return the policy of a row, and the one that played for the service where that is another."""
    mark = "*" if _privileged(row.played) else ""
    if row.played in (row.policy, row.policy.partition("@")[0]):  # the label also names the agent
        return row.policy + mark
    return f"{row.policy}: {row.played}{mark}"


def _privileged(policy: str) -> bool:
    try:
        return POLICIES.load(policy.partition("@")[0]).privileged
    except InputError:  # as-configured, or a policy that is not installed here
        return False


def sentences(report: Report, setting: RunSetting) -> Iterator[str]:
    """Yield a sentence for each policy of a setting, in the order of ``ranked``; none without the measures for it."""
    if not {AUC.name, ROUNDS_TO_TARGET.name} <= {measure.name for measure in report.measures}:
        return
    means = {(row.policy, row.measure.name): row for row in report.estimates if _of_market(row, setting)}
    base = means.get((report.baseline or "", ROUNDS_TO_TARGET.name))
    against = {(row.policy, row.measure.name): row for row in report.differences if _of_market(row, setting)}
    for policy in ranked(report, setting):
        met = means[policy, ROUNDS_TO_TARGET.name].to_target
        reached = f"{policy} {_reached(met)}"
        auc = means[policy, AUC.name]
        if (rounds := against.get((policy, ROUNDS_TO_TARGET.name))) and (area := against.get((policy, AUC.name))):
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
    return f"{_amount(row)} points {where}" if _clear(row) else f"({_signed(row)} points) not clearly {where}"


def effect_sentences(effects: Sequence[Difference]) -> Iterator[str]:
    """Yield a sentence for each policy of a sweep of several keys: how each key changes its AUC, the strongest first.

    Of the values of a key, that with the largest effect is named.
    """
    for policy, rows in groupby(filter(_is_auc, effects), key=lambda row: row.policy):
        strongest: dict[str, Difference] = {}
        for row in sorted(rows, key=lambda row: -abs(row.interval.estimate)):
            strongest.setdefault(next(iter(row.setting.sweep)), row)
        changes = (f"{_signed(row)} points from {row.setting.label}" for row in strongest.values())
        yield f"Averaged over the other keys, {policy}'s AUC changes by {'; by '.join(changes)}."


def _is_auc(row: Estimate) -> bool:
    return row.service == MARKET and row.measure is AUC


def _point(row: Estimate) -> str:
    return values_text(row.setting.sweep)


def ranked(report: Report, setting: RunSetting) -> list[str]:
    """Return the policies of a setting, the one with the highest mean AUC of the market first.

    Where the report has no AUC, they are in the order of its estimates.
    """
    rows = [row for row in report.estimates if _of_market(row, setting)]
    areas = {row.policy: row.interval.estimate for row in rows if row.measure is AUC}
    return sorted(areas or dict.fromkeys(row.policy for row in rows), key=lambda policy: -areas.get(policy, 0.0))


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


def finding(row: Difference, name: str, baseline: str, to_target: Difference | None = None) -> str:
    """Return who is ahead on a service, by a measure, by how much, and how much sooner if all runs met the target.

    Nobody is ahead by a measure of which neither more nor less is better: there it says who has more.
    """
    what, first, second = row.measure.name, name, baseline
    if row.interval.estimate * (row.measure.better or 1) < 0 and _clear(row):
        first, second = baseline, name
        to_target = to_target and replace(to_target, interval=_opposite(to_target.interval))
    sooner = f"; {first} meets the target {_apart(to_target, second)}" if to_target and not to_target.bound else ""
    unit = f" points of {what}" if row.measure.limits == PERCENT else f" in {what}"
    if not row.interval.estimate:
        return f"{first} and {second} have the same {what} on {row.service}{sooner}"
    if not _clear(row):
        return f"{first} and {second} are not clearly apart on {row.service}: {_signed(row)}{unit}{sooner}"
    if not row.measure.better:
        return f"{what} is {_amount(row)} higher with {first} than with {second} on {row.service}{sooner}"
    return f"{first} is ahead of {second} by {_amount(row)}{unit} on {row.service}{sooner}"


def _clear(row: Difference) -> bool:
    """Whether a difference has a side: its interval is without 0, or there is none."""
    return row.interval.excludes_zero or not row.interval.known


def _higher(row: Difference) -> str:
    if not row.interval.estimate:
        return "the same"
    if not _clear(row):
        return f"not clearly different ({_signed(row)} points)"
    return f"{_amount(row)} points {'higher' if row.interval.estimate > 0 else 'lower'}"


def _signed(row: Estimate) -> str:
    return row.measure.text(row.interval.estimate, "+") + _ends(row)


def _amount(row: Difference) -> str:
    """Return a difference, or its opposite if that is the positive one."""
    it = row.interval
    positive = it if it.estimate > 0 else _opposite(it)
    return row.measure.text(positive.estimate) + _ends(replace(row, interval=positive))


def _opposite(it: Interval) -> Interval:
    return Interval(-it.estimate, -it.high, -it.low, it.p)


def _ends(row: Estimate) -> str:
    return row.ends or f" (n = {row.seeds}: no interval)"
