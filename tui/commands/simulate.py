"""The commands that take scenarios: ``flmarket run``, ``flmarket train`` and ``flmarket validate``."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fl.errors import InputError

if TYPE_CHECKING:
    from scenarios.file.schema import Scenario
    from scenarios.running.cluster import Cluster

Sources = Annotated[
    list[str],
    typer.Argument(metavar="SCENARIO...", help="Scenario files or built-in names."),
]
Source = Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file or a built-in name.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value, such as services.mnist.budget=15. Repeatable."),
]


def run(
    sources: Sources,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Policy for every service; repeatable: one run each."),
    ] = None,
    seeds: Annotated[str, typer.Option(help="`10` (0 to 9), `0,3,7` or `0..9`: one run each.")] = "1",
    rounds: Annotated[int | None, typer.Option(help="Rounds to run, instead of the scenario's.")] = None,
    assignments: Assignments = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, each in a process of its own.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Training threads of a run; if not given, cores divided by jobs.")
    ] = None,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="This machine, or a Ray cluster.")] = "local",
    ray_address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The Ray cluster; a local one is started if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where run directories go.")] = Path("runs"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over what is there, complete or not.")] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End the batch with the first run that fails.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would run, and what is complete already.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only results.")] = False,
) -> None:
    """Run scenarios headlessly and write their logs as CSV.

    A run that is complete is skipped; one that was interrupted goes on where it was.
    """
    from scenarios.logs.directory import parse_seeds

    chosen_seeds = parse_seeds(seeds)
    _check_policies(policy or [])
    scenarios = _load_all(sources, assignments or [], rounds)

    from tui.commands.batch import run_batch  # brings torch

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


def train(
    source: Annotated[str, typer.Argument(metavar="SCENARIO", help="Scenario file or built-in name.")],
    out: Annotated[Path, typer.Option(metavar="CHECKPOINT", help="NAME.safetensors; its log and states go beside it.")],
    policy: Annotated[Literal["mahdrl", "mahdrl-paper"], typer.Option(help="What is trained.")] = "mahdrl",
    episodes: Annotated[int, typer.Option(min=1, help="Markets that are played while learning.")] = 200,
    backend: Annotated[str | None, typer.Option(help="Instead of the scenario's training.backend.")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="`5` (0 to 4), `0,3,7` or `0..9`: one training each; seed 0 if not given.")
    ] = None,
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Services take turns to learn, against the others' policies.")
    ] = False,
    together: Annotated[
        int, typer.Option(min=1, metavar="N", help="With --rotate: services that learn in the same episode.")
    ] = 1,
    rivals: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Policy that non-learners draw from in each episode; repeatable."),
    ] = None,
    every: Annotated[int, typer.Option("--evaluate-every", min=1, help="Episodes between two evaluations.")] = 25,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="A hyper-parameter. Repeatable.")
    ] = None,
    assignments: Assignments = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a training was stopped or killed.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Threads that train clients; if not given, cores divided by jobs.")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the log for TensorBoard, too (extra `tensorboard`).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train MAHDRL agents: services that learn whom to hire and what to pay."""
    from scenarios.logs.directory import parse_seeds

    _check_policies(rivals or [])
    backends = [] if backend is None else [f"training.backend={backend}"]
    (scenario,) = _load_all([source], [*(assignments or []), *backends], None)

    if together > 1 and not rotate:
        raise InputError("--together says how many of the services that take turns learn at a time: add --rotate")

    from learning.mahdrl.training import Plan  # brings torch
    from scenarios.train import Training, parse_options
    from tui.commands.training import train_all

    plan = Plan(
        episodes=episodes,
        epsilon_episodes=min(100, max(1, episodes // 2)),
        evaluate_every=every,
        together=together,
    )
    command = shlex.join(["flmarket", *sys.argv[1:]])
    training = Training(scenario, policy, parse_options(options or []), plan, rotate, tuple(rivals or ()), command)
    chosen_seeds = [0] if seeds is None else parse_seeds(seeds)
    for path in train_all(
        training, chosen_seeds, out, resume=resume, jobs=jobs, workers=workers, quiet=quiet, tensorboard=tensorboard
    ):
        typer.echo(str(path))


def validate(sources: Sources, assignments: Assignments = None) -> None:
    """Check scenario files; every problem is shown, as file:line: key: what is wrong."""
    for source, scenario in zip(sources, _load_all(sources, assignments or [], None), strict=True):
        from scenarios.loader import points

        count = len(points(scenario))
        sweep = f", a sweep of {count} points" if count > 1 else ""
        typer.echo(
            f"{source}: good: {scenario.name}, {len(scenario.services)} services, {scenario.rounds} rounds{sweep}"
        )


def _load_all(sources: list[str], assignments: list[str], rounds: int | None) -> "list[Scenario]":
    """Load all scenarios, so that the problems of all files are shown at once."""
    from scenarios.loader import Problem, ScenarioError, load

    overrides = [*assignments, *([] if rounds is None else [f"rounds={rounds}"])]
    scenarios: list[Scenario] = []
    problems: list[Problem] = []
    for source in sources:
        try:
            scenarios.append(load(source, overrides))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return scenarios


def _cluster(engine: str, address: str | None, workers: int | None, *, dry_run: bool) -> "Cluster | None":
    """Return the cluster that ``--engine ray`` asks for."""
    if engine == "local" or dry_run:
        if address is not None:
            raise InputError("--ray-address goes with --engine ray")
        return None
    from scenarios.running.cluster import Cluster

    return Cluster(address, cpus=workers or 1)


def _check_policies(names: list[str]) -> None:
    from learning.policy import load

    for name in names:
        load(name)
