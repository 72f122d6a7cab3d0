"""A report's tables, and what must be known to read them; ``report_formats`` writes them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from flmarket.analysis.results.measures import MARKET, ROUNDS_TO_TARGET, Measure
from flmarket.analysis.results.policy_sentences import effect_sentences, ranked, sentences, sweep_sentences
from flmarket.analysis.results.report import Difference, Estimate, Report
from flmarket.analysis.results.run_results import mixed
from flmarket.analysis.results.setting import RunSetting
from flmarket.core.errors import InputError
from flmarket.core.text import counted
from flmarket.core.text_table import TextTable
from learning.policy import POLICIES
from learning.statistics.intervals import FEWEST

DECIDING = ("AUC", "final accuracy", "rounds to target", "spent", "DQI served", "DQI bound ratio")
"""The measures that tables show first."""


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
    if any((run.setting.arrivals > 1).any() for run in report.runs):
        text.append(
            "A service that arrives later than in the first round counts from its arrival: its rounds to target, and "
            "the rounds that AUC and normalised reward are means of."
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
    begun, label, found = None, "", False
    for part in _tables(report):
        if part.heading:
            begun, label = part, part.heading
        if not report.shown or any(it.casefold() in f"{label}: {part.table.title}".casefold() for it in report.shown):
            if begun is not None:
                part = replace(part, setting=begun.setting, heading=begun.heading, answers=begun.answers)
            begun, found = None, True
            yield part
    if report.shown and not found:
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
            own = [row for row in estimates if row.service == service]
            title = "Whole market" if service == MARKET else f"Service {service}"
            part = _part(title, own, report.measures, report.by)
            if service == MARKET:
                found = list(sentences(report, setting))
                part = replace(part, setting=setting, heading=setting.label, answers=found)
            yield part
            if against := [row for row in differences if row.service == service]:
                yield _part(f"{title}, against {report.baseline}", against, report.measures, report.by)


def _sweeps(report: Report) -> Iterator[Part]:
    """Yield the tables of sweeps: a row for each point, and what the points come to in front of the first table."""
    for name in dict.fromkeys(row.setting.family for row in report.points):
        sweep = [row for row in report.points if row.setting.family == name]
        effects = [row for row in report.effects if row.setting.family == name]
        heading, found = f"Sweep of {name}", [*sweep_sentences(report, sweep), *effect_sentences(effects)]
        for policy, points in groupby(sweep, key=lambda row: row.policy):
            title = f"Sweep of {name}, {report.by} {policy}: whole market"
            means = [
                row
                for row in report.estimates
                if (row.setting.family, row.policy, row.service) == (name, policy, MARKET)
            ]
            part = _part(title, means, report.measures, "point", lambda row: row.setting.label)
            yield replace(part, heading=heading, answers=found)
            heading, found = "", []
            against = f"{title}, against the first point"
            yield _part(against, list(points), report.measures, "point", lambda row: row.setting.label)
            if own := [row for row in effects if row.policy == policy]:
                against = f"{title}, effect of each key, averaged over the others"
                yield _part(against, own, report.measures, "key", lambda row: row.setting.label)


def _part(
    title: str,
    rows: Sequence[Estimate],
    measures: Sequence[Measure],
    head: str = "policy",
    named: Callable[[Estimate], str] | None = None,  # returns a row's name; policies, if not given
) -> Part:
    """Return a table in two: the measures that decide, and the others."""
    few = [measure for measure in measures if measure.name in DECIDING]
    others = [measure for measure in measures if measure.name not in DECIDING]
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
        [label, _seeds(next(iter(own.values()))), *(_cell(own[name]) if name in own else "" for name in columns)]
        for label, own in lines.items()
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
