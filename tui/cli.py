"""The ``flmarket`` command line: thin, and quick to start.

Results go to stdout, narration and progress to stderr. Exit status: 0 done, 1 a run failed, 2 bad input, 130
interrupted. Whatever is slow to import (torch, pandas, Textual) is imported by the command that needs it.
"""

import sys
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from rich.console import Console

from fl.errors import InputError, RunError
from tui.commands.judge import report, verify
from tui.commands.listing import datasets, policies, scenarios_app
from tui.commands.simulate import Assignments, Source, run, train, validate

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
app.add_typer(scenarios_app, name="scenarios")
calibrate_app = typer.Typer(help="Fit the quality indicator, or the surrogate's learning curves, to real training.")
app.add_typer(calibrate_app, name="calibrate")
# In the order in which --help lists them.
app.command(epilog=_EXAMPLES)(run)
for _command in (train, validate, policies, datasets):
    app.command()(_command)

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
    from tui.commands.gather import export_runs

    export_runs(runs, target, parquet, table, shape)


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory: finished, interrupted or growing.")],
) -> None:
    """Watch a run again, round by round, in the terminal user interface."""
    from tui.commands.launch import run_directory, start

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
    from tui.commands.launch import serve, start

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
    from tui.commands.calibrate import run_dqi

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
    from tui.commands.calibrate import run_surrogate

    run_surrogate(source, assignments or [], out, runs, seeds, workers)


app.command()(report)
app.command()(verify)


def _complain(message: str, status: int) -> NoReturn:
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
