"""``flmarket calibrate``: reports progress on stderr, and closes with the table and the paths of the fits."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fl.surrogate.fitted import own_folder
from flmarket.cli.arguments import Assignments, Plugins, Source, load_plugins
from flmarket.cli.console import note, result
from scenarios.build import Shelf
from scenarios.calibration.dqi_experiments import calibrate_dqi
from scenarios.calibration.surrogate import calibrate_surrogate
from scenarios.file.checks import installed
from scenarios.file.schema import Scenario
from scenarios.loader import load
from scenarios.logs.directory import require_folder_place

calibrate = typer.Typer(help="Fit the quality indicator, or the surrogate's learning curves, to real training.")

Output = Annotated[Path, typer.Option(help="Folder for measurements, fits, tables and figures.")]


@calibrate.command()
def dqi(
    source: Source,
    assignments: Assignments = None,
    plugin: Plugins = None,
    out: Output = Path("calibration"),
    epochs: Annotated[int, typer.Option(min=1, help="Epochs that each new network is trained for.")] = 50,
    repetitions: Annotated[int, typer.Option(min=1, help="Experiments for each (D, EMD).")] = 10,
) -> None:
    """Fit eq. (6) to experiments on each of a scenario's data sets (the paper's Fig. 1).

    Trains a new network on one data set of every size and EMD of a grid, and tests it on the whole test split. Points
    are kept in --out; a second call measures only those that are missing.
    """
    with _fitting("dqi", source, assignments, plugin, out) as scenario:
        calibrate_dqi(scenario, out, Shelf(), note, epochs=epochs, repetitions=repetitions)


@calibrate.command()
def surrogate(
    source: Source,
    assignments: Assignments = None,
    plugin: Plugins = None,
    out: Output = Path("calibration"),
    runs: Annotated[int, typer.Option(min=2, help="Exploring runs to fit to.")] = 24,
    held_out: Annotated[int, typer.Option(min=1, metavar="N", help="Runs of each held-out policy to test with.")] = 3,
) -> None:
    """Fit the surrogate's learning curves to real training in a scenario's market, and test them on other policies.

    Traces are kept in --out as runs finish; a second call plays only the runs that are missing.
    """
    with _fitting("surrogate", source, assignments, plugin, out) as scenario:
        calibrate_surrogate(scenario, out, Shelf(), note, runs=runs, held_out=held_out)


@contextmanager
def _fitting(
    kind: str, source: str, assignments: list[str] | None, plugin: list[Path] | None, out: Path
) -> Iterator[Scenario]:
    """Load the scenario, say where the fits will be written, and close with their table."""
    load_plugins(plugin)
    # The fits that a scenario asks for are what is made here.
    scenario = load(source, assignments or [], catalogue=installed(fits=False))
    require_folder_place(out)
    fits, shared = out / f"{kind}.json", own_folder() / f"{kind}.json"
    note(
        f"Fits will be written to {fits} and to {shared}, where they replace earlier ones of the same data set and "
        "where all your scenarios find them (set FLMARKET_FITS to change the folder)."
    )
    yield scenario
    result((out / f"{kind}.md").read_text(encoding="utf-8"), end="")
    result(f"Fits written to {fits}; scenarios read them from {shared}")
