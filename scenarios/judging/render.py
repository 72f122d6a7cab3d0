"""A report as Markdown, CSV or one self-contained HTML page."""

import csv
import html
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from fl.errors import InputError
from fl.printable import cell, printable
from learning.intervals import FEWEST, Interval
from learning.policy import is_privileged
from scenarios.judging.measures import MARKET, MEASURES, Measure
from scenarios.judging.report import Difference, Estimate, Report
from scenarios.judging.results import Setting, mixed

Table = list[list[str]]
"""Rows of cells; the first row is the header."""

_Row = TypeVar("_Row", Estimate, Difference)

COLUMNS = (
    "scenario", "sweep", "policy", "service", "service_policy", "measure", "seeds", "mean", "low", "high", "baseline",
    "pairs", "difference", "difference_low", "difference_high", "probability_of_improvement", "p", "p_holm",
)  # fmt: skip

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ccc; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { border-bottom: 2px solid #555 }
figure { margin: 2rem 0 } svg { max-width: 100%; height: auto }
"""


def csv_text(report: Report) -> str:
    """Return the report as CSV: one row for each estimate, with its difference from the baseline; full precision."""
    found = {_key(row): row for row in report.differences}
    target = io.StringIO(newline="")
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in report.estimates:
        sweep = "; ".join(f"{key}={value}" for key, value in row.setting.sweep.items())
        texts = (row.setting.folder.name, sweep, row.policy, row.service, row.played, row.measure.name)
        line: list[object] = [*map(cell, texts)]
        line += [row.seeds, *_ends(row.interval)]
        if difference := found.get(_key(row)):
            line += [report.baseline, difference.seeds, *_ends(difference.interval)]
            line += ["" if difference.improvement is None else difference.improvement]
            line += ["" if math.isnan(p) else p for p in (difference.interval.p, difference.adjusted)]
        else:
            line += [""] * 8
        writer.writerow(line)
    return target.getvalue()


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    parts = ["# Report", *map(_literal, introduction(report))]
    for setting, title, table in tables(report):
        heading = f"## {_literal(setting.label)}" if setting else ""
        parts += [heading, f"**{_literal(title)}**", _markdown_table(table)]
    parts += ["## Measures", "\n".join(f"- *{name}*: {meaning}" for name, meaning in _glossary())]
    return "\n\n".join(part for part in parts if part) + "\n"


def html_page(report: Report, figures: Mapping[str, str]) -> str:
    """Return the report as one self-contained page.

    Args:
        report: the report.
        figures: SVG by caption.
    """
    parts = ["<h1>Report</h1>", *(f"<p>{html.escape(text)}</p>" for text in introduction(report))]
    for setting, title, table in tables(report):
        if setting:
            parts.append(f"<h2>{html.escape(setting.label)}</h2>")
        parts += [f"<h3>{html.escape(title)}</h3>", _html_table(table)]
    if figures:
        parts.append("<h2>Figures</h2>")
    for caption, svg in figures.items():
        parts.append(f"<figure>{svg[svg.index('<svg') :]}<figcaption>{html.escape(caption)}</figcaption></figure>")
    items = (f"<dt>{html.escape(name)}</dt><dd>{html.escape(meaning)}</dd>" for name, meaning in _glossary())
    parts.append(f"<h2>Measures</h2><dl>{''.join(items)}</dl>")
    head = f'<meta charset="utf-8"><title>flmarket report</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def introduction(report: Report) -> list[str]:
    """Return what must be known to read the tables, one paragraph each."""
    count = f"{len(report.runs)} run{'' if len(report.runs) == 1 else 's'}"
    text = [
        f"{count}. Means over seeds with 95 % t intervals; fewer than {FEWEST} seeds have none. "
        "A service that left keeps its accuracy and reward until the last round."
    ]
    if any((run.setting.arrivals > 1).any() for run in report.runs):
        text.append(
            "A service that arrives later than in the first round counts from its arrival: its rounds to target, and "
            "the rounds that AUC and normalised reward are means of."
        )
    if report.baseline:
        text.append(
            f"Differences are policy minus {report.baseline}, paired by seed; P is the probability that a run of the "
            f"policy beats one of {report.baseline}."
        )
    if report.points:
        text.append("Points of a sweep are compared with its first one, paired by seed.")
    if any(row.interval.known for row in (*report.differences, *report.points)):
        text.append(
            "† marks a difference from 0 that holds at 5 % for all differences of its table together (paired t tests, "
            "Holm's correction)."
        )
    text += mixed(report.runs)
    if any(_privileged(row.played) for row in report.estimates):
        text.append("Policies marked * see what the paper hides from services.")
    return text


def tables(report: Report) -> Iterator[tuple[Setting | None, str, Table]]:
    """Yield each table with its title, and the setting if it is the first of one; comparisons of sweeps come last."""
    for _, rows in groupby(report.estimates, key=lambda row: row.setting.folder):
        estimates = list(rows)
        setting = estimates[0].setting
        differences = [row for row in report.differences if row.setting is setting]
        for service in (MARKET, *setting.services):
            own = [row for row in estimates if row.service == service]
            title = "Whole market" if service == MARKET else f"Service {service}"
            yield (setting if service == MARKET else None), title, _table(own, _shown)
            against = [row for row in differences if row.service == service and row.measure.better]
            if against:
                yield None, f"{title}, against {report.baseline}", _table(against, _compared)
    for (name, policy), points in groupby(report.points, key=lambda row: (row.setting.name, row.policy)):
        title = f"Sweep of {name}, policy {policy}: whole market, against the first point"
        yield None, title, _table(list(points), _compared, "point", lambda row: row.setting.label)


def _table(
    rows: Sequence[_Row],
    write: Callable[[_Row], str],
    head: str = "policy",
    named: Callable[[_Row], str] | None = None,
) -> Table:
    """Return a table with a column for each measure, and a row for each policy or whatever ``named`` returns."""
    name = named or _named
    measures: list[Measure] = [measure for measure in MEASURES if any(row.measure is measure for row in rows)]
    cells: dict[tuple[str, str], _Row] = {(name(row), row.measure.name): row for row in rows}
    table = [[head, "seeds", *(measure.name for measure in measures)]]
    for label in dict.fromkeys(name(row) for row in rows):
        own: list[_Row] = [cells[label, measure.name] for measure in measures]
        table.append([label, _seeds(own[0]), *map(write, own)])
    return table


def _seeds(row: Estimate | Difference) -> str:
    return str(row.seeds) if row.seeds == 1 or row.interval.known else f"{row.seeds} (no interval)"


def _named(row: Estimate | Difference) -> str:
    """Return the policy of a row, and the one that played for the service where that is another."""
    if isinstance(row, Difference):
        return row.policy + ("*" if _privileged(row.policy) else "")
    played = row.played + ("*" if _privileged(row.played) else "")
    if row.policy.partition("@")[0] == row.played:  # the label also names the agent
        return row.policy + played.removeprefix(row.played)
    return f"{row.policy}: {played}"


def _privileged(policy: str) -> bool:
    try:
        return is_privileged(policy.partition("@")[0])
    except InputError:  # as-configured, or a policy that is not installed here
        return False


def _shown(row: Estimate) -> str:
    interval = _interval(row)
    if row.to_target is not None:
        return row.to_target.text(interval)
    return row.measure.text(row.interval.estimate) + interval


def _compared(row: Difference) -> str:
    text = row.measure.text(row.interval.estimate, "+") + _interval(row) + ("†" if row.holds else "")
    return text if row.improvement is None else f"{text} P {row.improvement:.2f}"


def _interval(row: Estimate | Difference) -> str:
    """Return the interval as it follows a mean; nothing for too few seeds."""
    interval, text = row.interval, row.measure.text
    return f" [{text(interval.low)}, {text(interval.high)}]" if interval.known else ""


def _ends(interval: Interval) -> list[object]:
    return [interval.estimate, *([interval.low, interval.high] if interval.known else ["", ""])]


def _key(row: Estimate | Difference) -> tuple[str, str, str, str]:
    return str(row.setting.folder), row.policy, row.service, row.measure.name


def _glossary() -> Iterator[tuple[str, str]]:
    for measure in MEASURES:
        yield measure.name, measure.meaning


def _markdown_table(table: Table) -> str:
    header, *rows = [[_literal(cell) for cell in row] for row in table]
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _literal(text: str) -> str:
    """Return a text as Markdown that shows it as it is: neither HTML, nor a link, nor the end of a cell."""
    return re.sub(r"[\\`|<]|\](?=[(\[])", r"\\\g<0>", printable(text))


def _html_table(table: Table) -> str:
    header, *rows = [[html.escape(cell) for cell in row] for row in table]
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
