"""``flmarket run``: plays a batch of runs, and closes with a table and where the logs are."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from flmarket.cli.arguments import (
    Assignments,
    Plugins,
    Quiet,
    Seed,
    Sources,
    check_policies,
    load_all,
    load_plugins,
    policy_names,
    seeds_of,
    seeds_option,
    taking,
)
from flmarket.cli.console import note
from scenarios.running.run_options import RunOptions

if TYPE_CHECKING:
    from scenarios.file.schema import Scenario


@taking(RunOptions)
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
    from scenarios.running.processes import Process

    chosen_seeds = seeds_of(seeds, seed, [0])
    with ExitStack() as stack:
        # It imports what it needs while this process reads and checks what to play.
        first = stack.enter_context(Process()) if options.engine == "local" and not dry_run else None
        from flmarket.cli.results import print_next_steps, print_results
        from flmarket.trackers import kind_of, named
        from scenarios.build import images_of
        from scenarios.file.checks import installed
        from scenarios.loader import points
        from scenarios.playable import unreadable_agents
        from scenarios.running.batch import BatchFailed, play_batch

        load_plugins(plugin)
        check_policies(policy or [])
        for each in track or []:
            kind_of(each)
        catalogue = replace(installed(), own_policies=not policy, obstacles=unreadable_agents)
        scenarios = load_all(sources, assignments or [], options.values, catalogue=catalogue)
        if dry_run:
            _list(scenarios, policy or [], chosen_seeds, options)
            return
        trackers = [named(text) for text in track or []]
        if first:
            markets = [point.scenario for scenario in scenarios for point in points(scenario)]
            first.send("prepare", datasets=sorted({name for market in markets for name in images_of(market)}))
        failed = False
        try:
            complete = play_batch(
                scenarios,
                policy or [],
                chosen_seeds,
                options,
                progress=not quiet,
                first=first,
                trackers=trackers,
            ).complete
        except BatchFailed as error:
            failed, complete = True, error.result.complete
        except KeyboardInterrupt:
            note("interrupted; the same command continues each run from its last checkpoint")
            raise
    changes = [*(assignments or []), *(f"{key}={value}" for key, value in options.values.items())]
    print_results(complete, changes)
    plain = sources == ["quickstart"] and not policy and str(options.out) == "runs"  # as what it says to type
    if complete and plain and not quiet and sys.stderr.isatty():
        print_next_steps(complete[0])
    raise typer.Exit(1 if failed else 0)


def _list(scenarios: "Sequence[Scenario]", policies: Sequence[str], seeds: Sequence[int], options: RunOptions) -> None:
    from flmarket.core.rich_console import stdout
    from scenarios.build import Shelf
    from scenarios.loader import regimes_of
    from scenarios.logs.run_state import RunState
    from scenarios.running.planning import due, expand, planned

    shelf = Shelf()
    policies, left_out = expand(policies, scenarios, shelf)
    for each in left_out:
        note(each)
    runs = planned(scenarios, policies, seeds, options, shelf, note)
    todo, complete = due(runs, fresh=options.again)
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
