"""The work of ``flmarket run``: runs are listed, or played, and a table says what they came to and where the logs are.

The command itself imports this late: its help needs none of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from flmarket.analysis.results.measures import MEASURES
from flmarket.analysis.results.report import Report, make_report
from flmarket.analysis.results.run_results import read_runs
from flmarket.cli.console import interruptible, note, program
from flmarket.cli.loading import check_policies, load_all
from flmarket.core.rich_console import draw, stdout
from flmarket.core.text import counted
from flmarket.core.text_table import TextTable
from flmarket.trackers import kind_of, named
from learning.policy import AS_CONFIGURED
from learning.statistics.measure import MARKET
from scenarios.build import Shelf, images_of
from scenarios.file.checks import installed
from scenarios.file.schema import Scenario
from scenarios.loader import regimes_of
from scenarios.logs.run_state import RunState
from scenarios.playable import unreadable_agents
from scenarios.running.batch import BatchFailed, play_batch
from scenarios.running.batch_run import Run
from scenarios.running.planning import plan_batch, split_by_completion
from scenarios.running.processes import Process
from scenarios.running.run_options import RunOptions

FEW = 5  # runs whose logs are named one by one; of more, their scenarios' folders are

SHOWN = ("final accuracy", "rounds to target", "spent", "served", "refused")


def load_to_play(
    sources: list[str], assignments: list[str], policies: list[str], trackers: Sequence[str], options: RunOptions
) -> list[Scenario]:
    """Return the scenarios of a batch, once it is known that the policies and the trackers are."""
    check_policies(policies)
    for text in trackers:
        kind_of(text)
    catalogue = replace(installed(), own_policies=not policies, obstacles=unreadable_agents)
    return load_all(sources, assignments, options.values, catalogue=catalogue)


def print_runs(
    scenarios: Sequence[Scenario], policies: Sequence[str], seeds: Sequence[int], options: RunOptions
) -> None:
    """List the runs that would be played, and those that are complete."""
    runs = plan_batch(scenarios, policies, seeds, options, Shelf(), note)
    todo, complete = split_by_completion(runs, fresh=options.again)
    console = stdout()
    skipped = {run.directory for run in complete}
    for run in runs:
        if run.directory in skipped:
            word = "complete"
        elif run.directory.state is not RunState.WAITING and not options.fresh:
            word = "resume"
        else:
            word = "run"
        line = f"{word:8}  {run.label}  {run.directory.path}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for chosen in regimes_of(run.scenario for run in runs):
        console.print(f"training  {chosen}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(todo)} to run, {len(complete)} complete", markup=False, highlight=False)


def play(
    scenarios: Sequence[Scenario],
    policies: Sequence[str],
    seeds: Sequence[int],
    options: RunOptions,
    *,
    quiet: bool,
    first: Process | None,  # as ``play_batch`` takes it
    trackers: Sequence[str],  # as ``--track`` takes them
) -> tuple[list[Run], bool]:
    """Play a batch; return the runs that are complete, and whether some failed."""
    followers = [named(text) for text in trackers]
    if first:
        markets = [scenario for scenario in scenarios if not scenario.sweep and not scenario.runs]
        first.send("prepare", datasets=sorted({name for market in markets for name in images_of(market)}))
    try:
        with interruptible("continues each run from its last checkpoint"):
            played = play_batch(
                scenarios, policies, seeds, options, progress=not quiet, first=first, trackers=followers
            )
    except BatchFailed as error:
        return error.result.complete, True
    return played.complete, False


def print_results(
    complete: Sequence[Run],
    changes: Sequence[str] = (),  # what the user set in the scenarios
) -> None:
    """Print the table of complete runs and where their logs are; nothing if there are none."""
    if not complete:
        return
    console = stdout()
    measures = [measure for measure in MEASURES if measure.name in SHOWN]
    report = make_report(read_runs(run.directory for run in complete), measures=measures)
    groups = {run.directory.folder / run.directory.path.parent.name: run.group for run in complete}
    draw(console, results_table(report, groups, changes))
    if text := explained(report):
        console.print(text, highlight=False)
    places = [run.directory.path / "rounds.csv" for run in complete]
    if len(places) > FEW:
        places = list(dict.fromkeys(path.parents[2] for path in places))
    for path in places:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)


def print_next_steps(first: Run) -> None:
    """Say what to do after a first run."""
    name = program()
    note(
        f"""
What next?
  Watch it, round by round:
    {name} replay {first.directory.path}
  Compare policies, then see the differences:
    {name} run quickstart --policy random --policy hqfa --seeds 5
    {name} report runs --baseline random
  Make a scenario of your own, edit it and run it:
    {name} scenarios show quickstart > market.toml
    {name} run market.toml"""
    )


def results_table(
    report: Report,
    groups: Mapping[Path, str],  # names of runs that differ in the seed alone, by the folder in which they are
    changes: Sequence[str] = (),  # as in ``print_results``
) -> TextTable:
    """Return the results of services as a table, one row for each below the name of its runs."""
    lines = []
    for place, rows in groupby(report.estimates, key=lambda row: row.setting.folder / row.policy):
        own = list(rows)
        seeds = max(row.seeds for row in own)
        lines.append([f"{groups[place]}, {counted(seeds, 'seed')}", *("" for _ in SHOWN)])
        for service in own[0].setting.services:
            found = {row.measure.name: row for row in own if row.service == service}
            if not found:
                lines.append([f"  {service}, never took part", *("" for _ in SHOWN)])
                continue
            first = found[SHOWN[0]]
            played = f" ({first.played})" if first.policy == AS_CONFIGURED else ""
            played += "" if first.seeds == seeds else f", took part in {counted(first.seeds, 'seed')}"
            cells = [found[name].mean() + (" %" if name == "final accuracy" else "") for name in SHOWN]
            lines.append([f"  {service}{played}", *cells])
    return TextTable("\n".join(["Results (means over seeds)", *changes]), ["", *SHOWN], lines)


def explained(report: Report) -> str:
    """Return what a lower bound in a table of results is; nothing where there is none."""
    bounds = [row.to_target for row in report.estimates if row.service != MARKET and row.to_target is not None]
    some = next((it for it in bounds if it.reached.any() and not it.reached.all()), None)
    if some is None:
        return ""
    return (
        f"{some.text()}: a lower bound; {some.reached.sum()} of {some.reached.size} runs met the target, "
        "the others count with their last round"
    )
