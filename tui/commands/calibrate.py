"""``flmarket calibrate``: narrates on stderr, and closes with the table and the paths of the fits."""

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from fl.fitted import own_folder
from scenarios.build import Shelf
from scenarios.calibration.dqi import DQIPlan, calibrate_dqi
from scenarios.calibration.surrogate import SurrogatePlan, calibrate_surrogate
from scenarios.file.checks import installed
from scenarios.file.schema import Scenario
from scenarios.loader import load


def run_dqi(
    source: str, assignments: Sequence[str], out: Path, epochs: int, repetitions: int, seed: int, workers: int | None
) -> None:
    """Calibrate the data quality indicator; see ``scenarios.calibration.dqi``."""
    plan = DQIPlan(epochs, repetitions, seed, workers or len(os.sched_getaffinity(0)))
    calibrate_dqi(_load(source, assignments), out, plan, Shelf(), _narrate)
    _close(out, "dqi")


def run_surrogate(
    source: str, assignments: Sequence[str], out: Path, runs: int, seeds: int, workers: int | None
) -> None:
    """Calibrate the surrogate; see ``scenarios.calibration.surrogate``."""
    plan = SurrogatePlan(runs, seeds, workers or len(os.sched_getaffinity(0)))
    calibrate_surrogate(_load(source, assignments), out, plan, Shelf(), _narrate)
    _close(out, "surrogate")


def _load(source: str, assignments: Sequence[str]) -> Scenario:
    # The fits that a scenario asks for are what is made here.
    return load(source, assignments, catalogue=installed(fits=False))


def _narrate(text: str) -> None:
    typer.echo(text, err=True)


def _close(out: Path, kind: str) -> None:
    typer.echo((out / f"{kind}.md").read_text(encoding="utf-8"), nl=False)
    typer.echo(f"Fits: {out / f'{kind}.json'}; scenarios find them in {own_folder() / f'{kind}.json'}")
