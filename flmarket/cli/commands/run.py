"""``flmarket run``: plays a batch of runs, and closes with a table and where the logs are."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    seeds_of,
    seeds_option,
)
from flmarket.cli.console import note, stdout
from flmarket.core.errors import InputError

if TYPE_CHECKING:
    from scenarios.file.schema import Scenario
    from scenarios.logs.directory import Fresh


def run(
    sources: Sources,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:CHECKPOINT]",
            help="Policy for every service. Repeatable: one run for each.",
        ),
    ] = None,
    seeds: Annotated[str | None, seeds_option("One run for each seed", "0")] = None,
    seed: Seed = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds to play, instead of the scenario's.")] = None,
    assignments: Assignments = None,
    plugin: Plugins = None,
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
    decision_timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Fail a run whose policy has not returned after so long. Off by default."),
    ] = None,
    fresh_changed: Annotated[
        bool,
        typer.Option("--fresh-changed", help="Start over where a policy, an agent or another plug-in has changed."),
    ] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="End the batch when a run fails.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would run and what is already complete.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run scenarios headlessly and write their logs as CSV.

    A complete run is skipped; an interrupted run continues from its last checkpoint.
    """
    from scenarios.running.process import Worker

    chosen_seeds = seeds_of(seeds, seed, [0])
    if fresh and fresh_changed:
        raise InputError("choose one of --fresh, which starts all runs over, and --fresh-changed")
    again: Fresh = fresh or ("changed" if fresh_changed else False)
    if ray_address is not None and engine != "ray":
        raise InputError("--ray-address is for --engine ray")
    with ExitStack() as stack:
        # It imports what it needs while this process reads and checks what to play.
        first = stack.enter_context(Worker()) if engine == "local" and not dry_run else None
        from flmarket.cli.results import print_next_steps, print_results
        from scenarios.build import images_of
        from scenarios.file.checks import installed
        from scenarios.loader import points
        from scenarios.playable import unreadable_agents
        from scenarios.running.batch import BatchFailed, play_batch

        load_plugins(plugin)
        check_policies(policy or [])
        catalogue = replace(installed(), own_policies=not policy, obstacles=unreadable_agents)
        scenarios = load_all(sources, assignments or [], rounds, catalogue=catalogue)
        markets = [point.scenario for scenario in scenarios for point in points(scenario)]
        if dry_run:
            _list(scenarios, policy or [], chosen_seeds, out, fresh=again)
            return
        if first:
            first.prepare(sorted({name for market in markets for name in images_of(market)}))
        failed = False
        try:
            complete = play_batch(
                scenarios,
                policy or [],
                chosen_seeds,
                out,
                jobs=jobs,
                workers=workers,
                engine=engine,
                ray_address=ray_address,
                fresh=again,
                fail_fast=fail_fast,
                progress=not quiet,
                decision_timeout=decision_timeout,
                first=first,
            ).complete
        except BatchFailed as error:
            failed, complete = True, error.result.complete
        except KeyboardInterrupt:
            note("interrupted; the same command continues each run from its last checkpoint")
            raise
    changes = [*(assignments or []), *([] if rounds is None else [f"rounds={rounds}"])]
    print_results(complete, changes)
    plain = sources == ["quickstart"] and not policy and out == Path("runs")  # as what it says to type
    if complete and plain and not quiet and sys.stderr.isatty():
        print_next_steps(complete[0])
    raise typer.Exit(1 if failed else 0)


def _list(
    scenarios: "Sequence[Scenario]", policies: Sequence[str], seeds: Sequence[int], out: Path, *, fresh: "Fresh"
) -> None:
    from scenarios.build import Shelf
    from scenarios.loader import regimes_of
    from scenarios.logs.directory import State
    from scenarios.running.planning import due, plan

    runs = plan(scenarios, policies, seeds, out, Shelf())
    todo, complete = due(runs, fresh=fresh)
    console = stdout()
    for planned in runs:
        if planned in complete:
            word = "complete"
        elif planned.directory.state is State.INCOMPLETE and fresh is not True:
            word = "resume"
        else:
            word = "run"
        line = f"{word:8}  {planned.label}  {planned.directory.path}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for chosen in regimes_of(run.scenario for run in runs):
        console.print(f"training  {chosen}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(todo)} to run, {len(complete)} complete", markup=False, highlight=False)
