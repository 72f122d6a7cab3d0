"""``flmarket run``: plans the batch, narrates it, and closes with a table and the paths of the logs."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fl import fused
from fl.model_names import BUILTIN_NAMES
from scenarios.build import Shelf, backend_of, images_of
from scenarios.file.schema import Scenario
from scenarios.judging.summary import ServiceSummary, summarise
from scenarios.logs.directory import State
from scenarios.running.batch import BatchResult, due, plan, run_all
from scenarios.running.cluster import Cluster
from scenarios.running.runner import Run
from tui.commands.console import stdout
from tui.commands.progress import LiveNarrator, PlainNarrator, QuietNarrator


def run_batch(
    scenarios: Sequence[Scenario],
    policies: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    *,
    jobs: int,
    workers: int | None,
    fresh: bool,
    fail_fast: bool,
    dry_run: bool,
    quiet: bool,
    cluster: Cluster | None = None,
) -> int:
    """Run everything that was asked for; return the exit status: 0, or 1 if a run failed."""
    shelf, errors = Shelf(), Console(stderr=True)
    runs = plan(scenarios, policies, seeds, out, shelf)
    if dry_run:
        _list(runs, fresh=fresh)
        return 0
    narrator: QuietNarrator
    if quiet:
        narrator = QuietNarrator(errors)
    elif errors.is_terminal:
        narrator = LiveNarrator(errors, len(runs))
    else:
        narrator = PlainNarrator(errors)
    if not quiet:
        for note in _notes(scenarios, shelf):
            errors.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    cores = len(os.sched_getaffinity(0))
    threads = max(1, cores // jobs) if workers is None else workers
    try:
        with narrator if isinstance(narrator, LiveNarrator) else nullcontext():
            result = run_all(
                runs,
                shelf,
                narrator,
                jobs=jobs,
                workers=threads,
                fresh=fresh,
                fail_fast=fail_fast,
                cluster=cluster,
            )
    except KeyboardInterrupt:
        errors.print("interrupted; the same command goes on where this one stopped")
        raise
    _close(result)
    return 1 if result.failed else 0


def _notes(scenarios: Sequence[Scenario], shelf: Shelf) -> list[str]:
    """Return what a user should know before believing the results."""
    notes = []
    for backend in {backend_of(scenario): None for scenario in scenarios}:
        if backend.note:
            notes.append(f'backend = "{backend.name}": {backend.note}')
    if any(scenario.dqi == "published" for scenario in scenarios):
        notes.append(
            'dqi = "published": the paper\'s parameters make DQI fall as data size grows (docs/decisions/dqi.md)'
        )
    for name in sorted({name for scenario in scenarios for name in images_of(scenario)}):
        if not shelf.get(name).official:
            notes.append(f"data set {name!r}: the files are not known to be the official ones; say so with any result")
    if not fused.available() and any(_would_be_fused(scenario) for scenario in scenarios):
        notes.append(
            "the fused kernel was not built (it needs a C++ compiler when flmarket is installed); training takes the "
            "reference path, which is about ten times slower (docs/performance.md)"
        )
    return notes


def _list(runs: Sequence[Run], *, fresh: bool) -> None:
    """Print what would run, and what is complete already."""
    todo, complete = due(runs, fresh=fresh)
    console = stdout()
    for run in runs:
        if run in complete:
            word = "complete"
        elif run.directory.state is State.INCOMPLETE and not fresh:
            word = "continue"
        else:
            word = "run"
        console.print(f"{word:8}  {run.label}  {run.directory.path}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(todo)} to run, {len(complete)} complete", markup=False, highlight=False)


def _would_be_fused(scenario: Scenario) -> bool:
    """Return whether the fused kernel would train some of a scenario's services, if it were there."""
    training = scenario.training
    if not backend_of(scenario).trains or training.device != "cpu" or training.kernel == "reference":
        return False
    return any(scenario.training_for(service.dataset).model in BUILTIN_NAMES for service in scenario.services)


def _close(result: BatchResult) -> None:
    console = stdout()
    if result.complete:
        console.print(_table(summarise(result.complete)))
        for run in result.complete:
            console.print(str(run.directory.path / "rounds.csv"), markup=False, highlight=False, soft_wrap=True)


def _table(summaries: Sequence[ServiceSummary]) -> Table:
    table = Table(title="Results (means over seeds)")
    for name in ("scenario", "service", "policy"):
        table.add_column(name, overflow="fold")
    for name in ("seeds", "final accuracy", "rounds to target", "spent", "served", "refused"):
        table.add_column(name, justify="right")
    group = None
    for row in summaries:
        if group not in {None, row.group}:
            table.add_section()
        reached = "never" if row.rounds_to_target is None else f"{row.rounds_to_target:.1f}"
        if 0 < row.reached < row.seeds:
            reached += f" ({row.reached} of {row.seeds})"
        table.add_row(
            "" if row.group == group else row.group,
            row.service,
            row.policy,
            str(row.seeds),
            f"{100 * row.accuracy:.2f} %",
            reached,
            f"{row.spent:.2f}",
            f"{row.served:.1f}",
            f"{row.refused:.1f}",
        )
        group = row.group
    return table
