"""The commands that judge runs by their logs: ``flmarket report`` and ``flmarket verify``."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories, or what holds some.")],
    style: Annotated[
        Literal["md", "csv", "html"], typer.Option("--format", help="How it is written to stdout.")
    ] = "md",
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Also write figures, as SVG, PNG and PDF.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Compare the other policies with this one, paired by seed.")
    ] = None,
) -> None:
    """Tables and figures over many runs: means and intervals over seeds, differences from a baseline."""
    from scenarios.judging.render import csv_text, html_page, markdown
    from scenarios.judging.report import make_report
    from scenarios.judging.results import read

    found = read(runs)
    made = make_report(found, baseline)
    if figures is not None:
        from scenarios.judging.figures import save

        save(found, figures)
    if style == "html":
        from scenarios.judging.figures import svgs

        typer.echo(html_page(made, svgs(found)), nl=False)
    else:
        typer.echo((csv_text if style == "csv" else markdown)(made), nl=False)


def verify(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories, or what holds some.")],
    rerun: Annotated[bool, typer.Option("--rerun", help="Also play each run again and compare byte for byte.")] = False,
) -> None:
    """Check that logs keep every constraint and that the money adds up."""
    from tui.commands.verify import verify_runs

    raise typer.Exit(verify_runs(runs, rerun=rerun))
