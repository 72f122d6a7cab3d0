"""``flmarket report``: tables on standard output, figures in files."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from flmarket.analysis.figures.drawing import save
from flmarket.analysis.figures.report_figures import figures as figures_of
from flmarket.analysis.figures.report_figures import svgs
from flmarket.analysis.log_frames import write_frame
from flmarket.analysis.results.measures import own_measures, report_measures
from flmarket.analysis.results.report import Report, make_report
from flmarket.analysis.results.report_formats import csv_text, html_page, latex, markdown
from flmarket.analysis.results.report_tables import introduction, tables
from flmarket.analysis.results.run_results import RunResult, by_policy, by_setting, mixed, read, remarks, without_forks
from flmarket.analysis.what_if.decisive_rounds import decisive
from flmarket.cli.arguments import Figures, Plugins, Runs, load_plugins, measure_names
from flmarket.cli.console import command_line, missing, note, on_the_screen, result, silenced
from flmarket.core.errors import InputError
from flmarket.core.files import asked_for
from flmarket.core.installation import versions
from flmarket.core.rich_console import draw, stdout
from flmarket.core.text import counted
from scenarios.logs.directory import require_folder_place, require_place
from scenarios.logs.finding import find_runs, incomplete, unfinished
from scenarios.logs.unlike_runs import played_by


def report(
    runs: Runs,
    style: Annotated[
        Literal["md", "csv", "html", "tex"] | None,
        typer.Option(
            "--format", help="Format of the tables; in a terminal they are drawn, in a file or pipe they are md."
        ),
    ] = None,
    figures: Figures = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Only tables in whose titles this stands: 'whole market'. Repeatable."),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Only figures in whose names this stands: accuracy. Repeatable."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY|VALUE", help="Compare the other policies, or values of --by, with this one, paired by seed."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Compare the values of a key, such as market.mechanism, in place of the policies."
        ),
    ] = None,
    forks: Annotated[
        bool, typer.Option("--forks", help="Also show forks, which are left out beside the runs that they are of.")
    ] = False,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this measure, such as 'social welfare'; flmarket plugins lists all. Repeatable.",
            autocompletion=measure_names,
        ),
    ] = None,
    bounds: Annotated[
        bool,
        typer.Option("--bounds", help="Also compare with what services could have had; takes seconds a run."),
    ] = False,
    together: Annotated[
        Literal["additive", "union"],
        typer.Option(
            help="What clients of a service are worth together in --bounds: the sum of their DQI, or that of all their "
            "images as one data set, which implies --bounds."
        ),
    ] = "additive",
    bounds_csv: Annotated[
        Path | None,
        typer.Option(
            "--bounds-csv",
            metavar="FILE",
            help="Also write what each service got and could have had in each round to a CSV file; implies --bounds.",
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Make tables and figures from many runs: means and intervals over seeds, differences from a baseline."""
    if table and style == "csv":
        raise InputError("--table: a CSV has the rows of all tables; choose another --format")
    if figure and figures is None and style != "html":
        raise InputError("--figure: there are no figures without --figures FOLDER or --format html")
    if bounds_csv is not None:
        require_place(bounds_csv)
    if figures is not None:
        require_folder_place(figures)
    bounds = bounds or bounds_csv is not None or together == "union"
    load_plugins(plugin)  # tables mark privileged policies, and have measures of one's own
    measures = report_measures(measure or ())
    there, damaged = find_runs(runs), list[str]()
    results = everything = read(there, damaged.append)
    if not forks:
        results = without_forks(everything, runs)
    if left := len(everything) - len(results):
        note(f"left out: {counted(left, 'fork')} of these runs; --forks shows forks, too")
    limits = None
    if bounds:
        from flmarket.analysis.what_if.bounds import Bounds  # which other reports do not need: 100 ms

        with silenced():
            limits = Bounds.read(results, together)
        if bounds_csv is not None:
            with asked_for(bounds_csv) as file:
                write_frame(limits.table(results), file)
            note(f"{bounds_csv}: what services got and could have had, by round")
    without = unfinished(there)
    further, notes = ((), []) if limits is None else (limits.measures, limits.left_out(results))
    computed = make_report(results, baseline, [*measures, *further], notes, by, without)
    computed = replace(
        computed, shown=table or (), asked_for=[it.name for it in (measures if measure else own_measures())]
    )
    results = list(computed.runs)
    if figures is not None:
        written = save(figures_of(results, computed.baseline, figure or ()), figures)
        names = ", ".join(dict.fromkeys(path.stem for path in written))
        note(f"{figures}: {counted(len(written), 'file')} written: {names}")
    not_complete = incomplete(without)
    lost = [*damaged, *computed.failures]
    whole = replace(computed, notes=(*not_complete, *lost, *computed.notes))
    if style is None and sys.stdout.isatty():
        _draw(whole, stdout())
    elif style == "html":
        page = html_page(
            whole, svgs(results, computed.baseline, figure or ()), _made_by(results), _decisive(results, plugin or [])
        )
        result(page, end="")
    elif style == "csv":
        result(csv_text(computed), end="")
    elif style == "tex":
        result(latex(whole, _made_by(results)), end="")
    else:
        result(markdown(whole, _made_by(results)), end="")
    if style == "csv":  # the other formats have room for it
        for text in (*remarks(results), *mixed(results), *computed.notes):
            note(text)
    missing(not_complete, lost)


def _made_by(runs: Sequence[RunResult]) -> list[str]:

    played = sorted({played_by(run.directory.meta()) for run in runs})
    return [
        command_line(),
        f"flmarket {versions()['flmarket']}; runs played by flmarket {', '.join(played)}",
    ]


def _decisive(runs: Sequence[RunResult], plugins: Sequence[Path]) -> dict[str, list[tuple[str, str]]]:
    """Return what decided the first run of each scenario and policy, and the commands that show it."""
    first = [run for members in by_setting(runs).values() for run, *_ in by_policy(members).values()]
    return {
        f"{run.setting.label}, {run.policy}, seed {run.seed}": [
            (f"Round {it.round}: {it.words}", f"flmarket {on_the_screen(run.directory.path, it.round, plugins)}")
            for it in rounds
        ]
        for run in first
        if (rounds := decisive(run))
    }


def _draw(shown: Report, console: Console) -> None:
    """Draw a report for a terminal: the measures that decide, a row for each and a column for each policy."""
    parts = [*tables(shown)]  # before anything is printed: there may be none of the name that is asked for
    for text in introduction(shown):
        console.print(text, markup=False, highlight=False)
    for part in parts:
        if part.heading:
            console.rule(part.heading, align="left")
        if part.setting is not None and (remark := part.setting.backend.remark):
            console.print(remark, style="bold", markup=False, highlight=False)
        for text in part.answers:
            console.print(f"- {text}", markup=False, highlight=False)
        draw(console, part.table.transposed())
    console.print("More measures, and what each is: flmarket report --format md", markup=False, highlight=False)
