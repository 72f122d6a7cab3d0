"""``flmarket run``: plays a batch of runs, and closes with a table and the paths of the logs."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fl.errors import InputError
from tui.commands.arguments import Assignments, Quiet, Sources, check_policies, load_all
from tui.commands.console import stdout

if TYPE_CHECKING:
    from scenarios.file.schema import Scenario
    from scenarios.running.cluster import Cluster
    from scenarios.running.runner import Run


def run(
    sources: Sources,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Policy for every service. Repeatable: one run for each."),
    ] = None,
    seeds: Annotated[str, typer.Option(help="`10` (0 to 9), `0,3,7` or `0..9`: one run for each.")] = "1",
    rounds: Annotated[int | None, typer.Option(help="Rounds to play, instead of the scenario's.")] = None,
    assignments: Assignments = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, each in its own process.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Training threads of each run; cores divided by jobs if not given.")
    ] = None,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="This machine, or a Ray cluster.")] = "local",
    ray_address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The Ray cluster; a local one is started if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for run directories.")] = Path("runs"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, even if a run is complete.")] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="End the batch when a run fails.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would run and what is already complete.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run scenarios headlessly and write their logs as CSV.

    A complete run is skipped; an interrupted run resumes where it stopped.
    """
    from scenarios.logs.directory import parse_seeds

    chosen_seeds = parse_seeds(seeds)
    check_policies(policy or [])
    scenarios = load_all(sources, assignments or [], rounds)
    status = run_batch(
        scenarios,
        policy or [],
        chosen_seeds,
        out,
        jobs=jobs,
        workers=workers,
        fresh=fresh,
        fail_fast=fail_fast,
        dry_run=dry_run,
        quiet=quiet,
        cluster=_cluster(engine, ray_address, workers, dry_run=dry_run),
    )
    raise typer.Exit(status)


def run_batch(
    scenarios: "Sequence[Scenario]",
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
    cluster: "Cluster | None" = None,
) -> int:
    """Run everything that was asked for; return the exit status: 0, or 1 if a run failed."""
    from rich.console import Console

    from scenarios.build import Shelf  # brings torch
    from scenarios.running.batch import plan, run_all
    from tui.commands.notes import notes
    from tui.commands.progress import LiveReporter, PlainReporter, QuietReporter
    from tui.commands.results import print_results

    shelf, errors = Shelf(), Console(stderr=True)
    runs = plan(scenarios, policies, seeds, out, shelf)
    if dry_run:
        _list(runs, fresh=fresh)
        return 0
    reporter: QuietReporter
    if quiet:
        reporter = QuietReporter(errors)
    elif errors.is_terminal:
        reporter = LiveReporter(errors, len(runs))
    else:
        reporter = PlainReporter(errors)
    if not quiet:
        for note in notes(scenarios, shelf):
            errors.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    cores = len(os.sched_getaffinity(0))
    threads = max(1, cores // jobs) if workers is None else workers
    try:
        with reporter if isinstance(reporter, LiveReporter) else nullcontext():
            result = run_all(
                runs,
                shelf,
                reporter,
                jobs=jobs,
                workers=threads,
                fresh=fresh,
                fail_fast=fail_fast,
                cluster=cluster,
            )
    except KeyboardInterrupt:
        errors.print("interrupted; the same command resumes where this one stopped")
        raise
    print_results(result)
    return 1 if result.failed else 0


def _list(runs: "Sequence[Run]", *, fresh: bool) -> None:
    """Print what would run, and what is already complete."""
    from scenarios.logs.directory import State
    from scenarios.running.batch import due

    todo, complete = due(runs, fresh=fresh)
    console = stdout()
    for planned in runs:
        if planned in complete:
            word = "complete"
        elif planned.directory.state is State.INCOMPLETE and not fresh:
            word = "resume"
        else:
            word = "run"
        line = f"{word:8}  {planned.label}  {planned.directory.path}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(todo)} to run, {len(complete)} complete", markup=False, highlight=False)


def _cluster(engine: str, address: str | None, workers: int | None, *, dry_run: bool) -> "Cluster | None":
    """Return the cluster that ``--engine ray`` asks for."""
    if engine == "local" or dry_run:
        if address is not None:
            raise InputError("--ray-address is for --engine ray")
        return None
    from scenarios.running.cluster import Cluster

    return Cluster(address, cpus=workers or 1)
