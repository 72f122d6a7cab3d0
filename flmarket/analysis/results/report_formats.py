"""A report as Markdown, LaTeX, CSV, and one self-contained HTML page.

The page has first the picture and what it comes to, then how to read the tables, and these; what decides nothing is
folded.
"""

import html
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from flmarket.analysis.log_frames import write_frame
from flmarket.analysis.results.report import Estimate, Report
from flmarket.analysis.results.report_tables import Part, introduction, tables
from flmarket.core.text import printable
from flmarket.core.text_table import html_document, markdown_literal
from scenarios.file.differences import values_text

COLUMNS = (
    "scenario", "sweep", "policy", "service", "service_policy", "measure", "seeds", "mean", "low", "high", "bound",
    "baseline", "pairs", "difference", "difference_low", "difference_high", "difference_bound",
    "probability_of_improvement", "p", "p_holm", "backend", "left_out",
)  # fmt: skip


_DECISIVE = (
    "Of the first seed of each policy: the rounds in which a service left or an intervention began, and the worst of "
    "each service. The command, started in the folder in which this page was made, shows the round in the terminal."
)


def markdown(report: Report, made_by: Sequence[str] = ()) -> str:
    parts = ["# Report", *map(markdown_literal, introduction(report))]
    for part in tables(report):
        if part.heading:
            parts.append(f"## {markdown_literal(part.heading)}")
        if part.setting and (remark := part.setting.backend.remark):
            parts.append(f"**{markdown_literal(remark)}**")
        if part.answers:
            parts.append("\n".join(f"- {markdown_literal(sentence)}" for sentence in part.answers))
        parts += [f"**{markdown_literal(part.table.title)}**", part.table.markdown()]
        if part.more:
            parts += ["<details><summary>More measures</summary>", part.more.markdown(), "</details>"]
    parts += ["## Measures", "\n".join(f"- *{it.name}*: {it.meaning}" for it in report.measures)]
    if made_by:
        parts += ["## Made by", "\n".join(f"    {printable(line)}" for line in made_by)]
    return "\n\n".join(parts) + "\n"


def latex(report: Report, made_by: Sequence[str] = ()) -> str:
    """Return the tables of a report, to be included as a file, or to copy single tables from.

    What must be known to read them stands in front as comments.
    """
    lines = [*made_by, r"needs \usepackage{booktabs}", *introduction(report)]
    parts, label = ["\n".join(f"% {printable(line)}" for line in lines)], ""
    for part in tables(report):
        if part.setting:
            label = f"{part.heading}: "  # a sweep's title says what it is of
        parts += [replace(it, title=label + it.title).latex() for it in (part.table, part.more) if it]
    return "\n\n".join(parts) + "\n"


def csv_text(report: Report) -> str:
    """Return the report as CSV: one row for each estimate, with its difference from the baseline; full precision.

    ``bound`` and ``difference_bound`` mark times to target that are not what they say, as some runs never met it;
    ``left_out`` counts the runs of the policy that have no results.
    """
    against_baseline = {_key(row): row for row in report.differences}
    lines: list[list[object]] = []
    for row in report.estimates:
        sweep = "; ".join(values_text({key: value}) for key, value in row.setting.differing.items())
        line = [row.setting.folder.name, sweep, row.policy, row.service, row.played, row.measure.name, row.seeds]
        line += [row.interval.estimate, row.interval.low, row.interval.high, _bound(row)]
        if difference := against_baseline.get(_key(row)):
            interval = difference.interval
            line += [report.baseline, difference.seeds, interval.estimate, interval.low, interval.high]
            line += [difference.bound, difference.improvement, interval.p, difference.adjusted]
        else:
            line += [None] * 9
        lines.append([*line, row.setting.backend.name, row.left_out])
    write_frame(pd.DataFrame(lines, columns=list(COLUMNS), dtype=object), text := io.StringIO())
    return text.getvalue()


def _bound(row: Estimate) -> str:
    """Return what marks a mean of times to target: ``never`` where no run met it, ``>`` where not all did."""
    if row.to_target is None or row.to_target.reached.all():
        return ""
    return ">" if row.to_target.reached.any() else "never"


def _key(row: Estimate) -> tuple[Path, str, str, str]:
    return row.setting.folder, row.policy, row.service, row.measure.name


def html_page(
    report: Report,
    figures: Mapping[str, tuple[str, str]],  # by name, the caption and the SVG; see ``report_figures.svgs``
    made_by: Sequence[str] = (),  # what made it, a line each: the command, and versions
    decisive: Mapping[str, Sequence[tuple[str, str]]] = {},  # by run: what decided it, and the command that shows that
) -> str:
    """Return the report as one self-contained page."""
    first, folded = [], dict(figures)
    paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in introduction(report))
    legend = [f"<h3>How to read the tables</h3>{paragraphs}"]
    for part in tables(report):
        if part.heading:
            first.append(f"<h2>{html.escape(part.heading)}</h2>")
        if part.setting:
            if remark := part.setting.backend.remark:
                first.append(f"<p><strong>{html.escape(remark)}</strong></p>")
            if picture := folded.pop(f"{part.setting.folder.name}-accuracy", None):
                first.append(_figure(*picture))
        if part.answers:
            if not part.setting:
                first += [_figure(*folded.pop(name)) for name in list(folded) if "-sweep-" in name]
            sentences = "".join(f"<li>{html.escape(text)}</li>" for text in part.answers)
            first.append(f"<ul>{sentences}</ul>")
            first += legend
            legend = []
        first += _tables(part)
    parts = ["<h1>Report</h1>", *first]
    if folded:
        drawn = "".join(_figure(caption, svg) for caption, svg in folded.values())
        parts.append(f"<details><summary>More figures</summary>{drawn}</details>")
    if decisive:
        lists = "".join(f"<h3>{html.escape(run)}</h3>{_commands(rounds)}" for run, rounds in decisive.items())
        parts.append(f"<details><summary>Decisive rounds</summary><p>{_DECISIVE}</p>{lists}</details>")
    items = (f"<dt>{html.escape(it.name)}</dt><dd>{html.escape(it.meaning)}</dd>" for it in report.measures)
    parts.append(f"<details><summary>Measures</summary><dl>{''.join(items)}</dl></details>")
    if made_by:
        lines = html.escape("\n".join(made_by))
        parts.append(f"<h2>Made by</h2><pre>{lines}</pre>")
    return html_document("flmarket report", parts)


def _tables(part: Part) -> Iterator[str]:
    yield f"<h3>{html.escape(part.table.title)}</h3>{part.table.html()}"
    if part.more:
        yield f"<details><summary>More measures</summary>{part.more.html()}</details>"


def _commands(rounds: Sequence[tuple[str, str]]) -> str:
    items = (f"<li>{html.escape(what)}<br><code>{html.escape(command)}</code></li>" for what, command in rounds)
    return f"<ul>{''.join(items)}</ul>"


def _figure(caption: str, svg: str) -> str:
    return f"<figure>{svg[svg.index('<svg') :]}<figcaption>{html.escape(caption)}</figcaption></figure>"
