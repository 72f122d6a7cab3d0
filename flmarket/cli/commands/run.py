"""``flmarket run``: plays a batch of runs, and closes with a table and where the logs are."""

import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from flmarket.cli.arguments import (
    Assignments,
    Plugins,
    Quiet,
    Seed,
    Sources,
    load_plugins,
    options_of,
    policy_names,
    seeds_of,
    seeds_option,
)
from scenarios.running.processes import Process
from scenarios.running.run_options import RunOptions


@options_of(RunOptions)
def run(
    sources: Sources,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[(KEY=VALUE,...)][:CHECKPOINT]",
            help="Policy for every service; all: every policy that can play. Repeatable: one run for each.",
            autocompletion=policy_names,
        ),
    ] = None,
    seeds: Annotated[str | None, seeds_option("One run for each seed", "0")] = None,
    seed: Seed = None,
    assignments: Assignments = None,
    plugin: Plugins = None,
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=WHERE]",
            help="Also send the rounds to tensorboard[=FOLDER], mlflow[=EXPERIMENT] or wandb[=PROJECT]. If not given: "
            "the folder tensorboard, the experiment or project flmarket. Repeatable.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would run and what is already complete.")
    ] = False,
    quiet: Quiet = False,
    *,
    options: RunOptions,
) -> None:
    """Run scenarios headlessly and write their logs as CSV.

    A complete run is skipped; an interrupted run continues from its last checkpoint.
    """
    chosen_seeds, policies = seeds_of(seeds, seed, [0]), policy or []
    with ExitStack() as stack:
        # It imports what it needs while this process imports, reads and checks what to play.
        first = stack.enter_context(Process()) if options.engine == "local" and not dry_run else None
        from flmarket.cli import batches, loading

        load_plugins(plugin)
        scenarios = batches.load_to_play(sources, assignments or [], policies, track or [], options)
        if dry_run:
            batches.print_runs(scenarios, policies, chosen_seeds, options)
            return
        complete, failed = batches.play(
            scenarios, policies, chosen_seeds, options, quiet=quiet, first=first, trackers=track or []
        )
    batches.print_results(complete, loading.all_assignments(assignments or [], options.values))
    plain = sources == ["quickstart"] and not policies and str(options.out) == "runs"  # as what it says to type
    if complete and plain and not quiet and sys.stderr.isatty():
        batches.print_next_steps(complete[0])
    raise typer.Exit(1 if failed else 0)
