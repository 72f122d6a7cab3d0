"""``flmarket report``: tables on standard output, figures in files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tui.commands.arguments import Plugins, Runs, load_plugins


def report(
    runs: Runs,
    style: Annotated[Literal["md", "csv", "html"], typer.Option("--format", help="Format of the tables.")] = "md",
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Also write figures, as SVG, PNG and PDF.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Compare the other policies with this one, paired by seed.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Make tables and figures from many runs: means and intervals over seeds, differences from a baseline."""
    from scenarios.judging.render import csv_text, html_page, markdown
    from scenarios.judging.report import make_report
    from scenarios.judging.results import read

    load_plugins(plugin)  # tables mark privileged policies
    found = read(runs)
    made = make_report(found, baseline)
    if figures is not None:
        from scenarios.judging.figures import save

        for path in save(found, figures):
            typer.echo(f"figure: {path}", err=True)
    if style == "html":
        from scenarios.judging.figures import svgs

        typer.echo(html_page(made, svgs(found)), nl=False)
    else:
        typer.echo((csv_text if style == "csv" else markdown)(made), nl=False)
