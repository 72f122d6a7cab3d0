"""A report as one self-contained HTML page: the picture and what it comes to, how to read the tables, and these.

What decides nothing is folded.
"""

import html
from collections.abc import Iterator, Mapping, Sequence

from flmarket.analysis.results.markdown import Part, Table, introduction, tables
from flmarket.analysis.results.report import Report

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; font-size: 13px }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ccc; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { border-bottom: 2px solid #555 }
figure { margin: 2rem 0 } summary { cursor: pointer } pre { overflow-x: auto } svg { max-width: 100%; height: auto }
code { user-select: all }
"""


_DECISIVE = (
    "Of the first seed of each policy: the rounds in which a service left or an intervention began, and the worst of "
    "each service. The command, started in the folder in which this page was made, shows the round in the terminal."
)


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
            found = "".join(f"<li>{html.escape(text)}</li>" for text in part.answers)
            first.append(f"<ul>{found}</ul>")
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
    return document("flmarket report", parts)


def document(title: str, parts: Sequence[str]) -> str:
    """Return a self-contained page of some parts, which are HTML already."""
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def html_table(table: Table) -> str:
    header, *rows = [[html.escape(cell) for cell in row] for row in table]
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _tables(part: Part) -> Iterator[str]:
    yield f"<h3>{html.escape(part.title)}</h3>{html_table(part.table)}"
    if part.more:
        yield f"<details><summary>More measures</summary>{html_table(part.more)}</details>"


def _commands(rounds: Sequence[tuple[str, str]]) -> str:
    items = (f"<li>{html.escape(what)}<br><code>{html.escape(command)}</code></li>" for what, command in rounds)
    return f"<ul>{''.join(items)}</ul>"


def _figure(caption: str, svg: str) -> str:
    return f"<figure>{svg[svg.index('<svg') :]}<figcaption>{html.escape(caption)}</figcaption></figure>"
