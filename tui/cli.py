"""The ``flmarket`` command line: thin, and quick to start.

Results go to stdout, narration and progress to stderr. Exit status: 0 done, 1 a run failed, 2 bad input, 130
interrupted. Whatever is slow to import (torch, pandas, Textual) is imported by the command that needs it.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from fl.errors import InputError, RunError
from tui.console import stdout
from tui.judge import report, verify

if TYPE_CHECKING:
    from scenarios.cluster import Cluster
    from scenarios.schema import Scenario

FAILED, BAD_INPUT = 1, 2

_EXAMPLES = """[bold]Examples[/bold]

$ flmarket run quickstart

$ flmarket run paper --policy random --policy hqfa --seeds 5

$ flmarket run paper-cores --seeds 10 --jobs 4

$ flmarket run my-market.toml --set clients.cores=3 --rounds 20

$ flmarket report runs --baseline random --figures figures

$ flmarket export runs --csv all-rounds.csv
"""

app = typer.Typer(
    name="flmarket",
    help="Simulate a market in which federated-learning services compete for clients under monetary budgets.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
scenarios_app = typer.Typer(help="List the built-in scenarios; `scenarios show NAME` prints one's file.")
app.add_typer(scenarios_app, name="scenarios")
calibrate_app = typer.Typer(help="Fit the quality indicator, or the surrogate's learning curves, to real training.")
app.add_typer(calibrate_app, name="calibrate")

Sources = Annotated[
    list[str],
    typer.Argument(metavar="SCENARIO...", help="Scenario files or built-in names."),
]
Source = Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file or a built-in name.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value, such as services.mnist.budget=15. Repeatable."),
]

Output = Annotated[Path, typer.Option(help="Where measurements, fits, tables and figures go.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Training threads; the number of cores if not given.")]


def main() -> None:
    """Run the command line; the entry point of the ``flmarket`` command."""
    try:
        if sys.argv[1:] == ["tui"]:
            tui()  # nothing to parse; Typer's parser would import pydantic before the first picture
        else:
            app(standalone_mode=True)
    except InputError as error:
        _complain(str(error), BAD_INPUT)
    except RunError as error:
        _complain(str(error), FAILED)


@app.command(epilog=_EXAMPLES)
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
    from scenarios.store import parse_seeds

    chosen_seeds = parse_seeds(seeds)
    _check_policies(policy or [])
    scenarios = _load_all(sources, assignments or [], rounds)

    from tui.batch import run_batch  # brings torch

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


@app.command()
def train(
    source: Annotated[str, typer.Argument(metavar="SCENARIO", help="Scenario file or built-in name.")],
    out: Annotated[Path, typer.Option(metavar="CHECKPOINT", help="NAME.safetensors; its log and states go beside it.")],
    policy: Annotated[Literal["mahdrl", "mahdrl-paper"], typer.Option(help="What is trained.")] = "mahdrl",
    episodes: Annotated[int, typer.Option(min=1, help="Markets that are played while learning.")] = 200,
    backend: Annotated[
        Literal["real", "surrogate"] | None, typer.Option(help="Instead of the scenario's training.backend.")
    ] = None,
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
        int | None, typer.Option(min=0, help="Threads that train clients; all cores if not given.")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the log for TensorBoard, too (extra `tensorboard`).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train MAHDRL agents: services that learn whom to hire and what to pay."""
    from scenarios.store import parse_seeds

    _check_policies(rivals or [])
    backends = [] if backend is None else [f"training.backend={backend}"]
    (scenario,) = _load_all([source], [*(assignments or []), *backends], None)

    from learning.mahdrl.training import Plan  # brings torch
    from scenarios.train import Training, parse_options
    from tui.training import train_all

    plan = Plan(
        episodes=episodes,
        epsilon_episodes=min(100, max(1, episodes // 2)),
        evaluate_every=every,
        together=together,
    )
    training = Training(scenario, policy, parse_options(options or []), plan, rotate, tuple(rivals or ()))
    chosen_seeds = [0] if seeds is None else parse_seeds(seeds)
    for path in train_all(
        training, chosen_seeds, out, resume=resume, jobs=jobs, workers=workers, quiet=quiet, tensorboard=tensorboard
    ):
        typer.echo(str(path))


@app.command()
def validate(sources: Sources, assignments: Assignments = None) -> None:
    """Check scenario files; every problem is shown, as file:line: key: what is wrong."""
    for source, scenario in zip(sources, _load_all(sources, assignments or [], None), strict=True):
        from scenarios.loader import points

        count = len(points(scenario))
        sweep = f", a sweep of {count} points" if count > 1 else ""
        typer.echo(
            f"{source}: good: {scenario.name}, {len(scenario.services)} services, {scenario.rounds} rounds{sweep}"
        )


@scenarios_app.callback(invoke_without_command=True)
def list_scenarios(context: typer.Context) -> None:
    """List the built-in scenarios."""
    if context.invoked_subcommand is not None:
        return
    from scenarios.loader import builtin_names, load

    table = Table("name", "services", "clients", "rounds", "description")
    for name in builtin_names():
        scenario = load(name)
        row = (len(scenario.services), scenario.clients.count, scenario.rounds)
        table.add_row(name, *map(str, row), scenario.description)
    stdout().print(table)


@scenarios_app.command("show")
def show_scenario(name: Annotated[str, typer.Argument(help="Name of a built-in scenario.")]) -> None:
    """Print a built-in scenario's file, to start an own one from."""
    from scenarios.loader import builtin_text

    typer.echo(builtin_text(name), nl=False)


@app.command()
def policies() -> None:
    """List the policies a service can use."""
    from learning.policy import load, names

    table = Table("name", "privileged", "what it does")
    for name in names():
        found = load(name)
        table.add_row(name, "yes" if found.privileged else "", found.summary)
    stdout().print(table)


@app.command()
def datasets() -> None:
    """List the data sets a service can learn, and where the files are looked for."""
    from fl.datasets import data_root, info, names

    table = Table("name", "labels", "train", "test", "source", "what it is")
    for name in names():
        found = info(name)
        sizes = (f"{found.labels}", f"{found.train_size:,}", f"{found.test_size:,}")
        table.add_row(name, *sizes, found.source, found.description)
    stdout().print(table)
    typer.echo(f"Downloaded files live in {data_root()} (set FLMARKET_DATA to change it).")


@app.command()
def export(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories, or what holds some.")],
    target: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Where to write; `-` is stdout.")] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Where to write Parquet, if pyarrow is installed.")
    ] = None,
    table: Annotated[Literal["rounds", "offers", "events"], typer.Option(help="Which log.")] = "rounds",
    shape: Annotated[
        Literal["long", "wide"], typer.Option(help="`wide` gives rounds one row, with columns such as mnist.accuracy.")
    ] = "long",
) -> None:
    """Gather the logs of runs into one file, with scenario, policy and seed in front."""
    from tui.gather import export_runs

    export_runs(runs, target, parquet, table, shape)


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory: finished, interrupted or growing.")],
) -> None:
    """Watch a run again, round by round, in the terminal user interface."""
    from tui.launch import run_directory, start

    start(str(run_directory(run)), Path("runs"))


@app.command()
def tui(
    what: Annotated[
        str | None, typer.Argument(metavar="[SCENARIO|RUN]", help="A scenario to run, or a run directory to replay.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where run directories go, and are looked for.")] = Path("runs"),
    web: Annotated[bool, typer.Option("--web", help="Serve it to browsers on this machine.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where --web listens, on the loopback address.")] = 8000,
) -> None:
    """Open the terminal user interface: configure scenarios, watch markets live, replay and compare runs."""
    from tui.launch import serve, start

    if web:
        serve(what, out, port)
    else:
        start(what, out)


@calibrate_app.command("dqi")
def calibrate_dqi(
    source: Source,
    assignments: Assignments = None,
    out: Output = Path("calibration"),
    epochs: Annotated[int, typer.Option(min=1, help="Passes of each new network over its data set.")] = 50,
    repetitions: Annotated[int, typer.Option(min=1, help="Experiments for each (D, EMD).")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Of all draws.")] = 0,
    workers: Workers = None,
) -> None:
    """Fit eq. (6) to experiments on each of a scenario's data sets (the paper's Fig. 1).

    Trains a new network on one data set of every size and EMD of a grid, and tests it on the whole test split. Points
    are kept in --out; a second call goes on where the first one stopped.
    """
    from tui.calibrate import run_dqi

    run_dqi(source, assignments or [], out, epochs, repetitions, seed, workers)


@calibrate_app.command("surrogate")
def calibrate_surrogate(
    source: Source,
    assignments: Assignments = None,
    out: Output = Path("calibration"),
    runs: Annotated[int, typer.Option(min=2, help="Exploring runs to fit to.")] = 24,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each held-out policy to test with.")] = 3,
    workers: Workers = None,
) -> None:
    """Fit the surrogate's learning curves to real training in a scenario's market, and test them on other policies.

    Traces are kept in --out as runs finish; a second call goes on where the first one stopped.
    """
    from tui.calibrate import run_surrogate

    run_surrogate(source, assignments or [], out, runs, seeds, workers)


app.command()(report)
app.command()(verify)


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
    from scenarios.cluster import Cluster

    return Cluster(address, cpus=workers or 1)


def _check_policies(names: list[str]) -> None:
    from learning.policy import load

    for name in names:
        load(name)


def _complain(message: str, status: int) -> NoReturn:
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
