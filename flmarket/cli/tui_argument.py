"""The argument of ``flmarket tui``: what the app opens for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flmarket.core.errors import InputError
from flmarket.core.files import find_below
from scenarios.loader import builtin_names, load
from scenarios.logs.finding import run_directory
from tui.state.batch_folder import run_directories
from tui.state.training_log import SUFFIXES, find_logs, logs_at

TRAINING = ".training"  # what the name of the folder ends in that a training keeps its states in


class Opening(NamedTuple):
    """The thing that the app opens: at most one of these."""

    scenario: str | None = None  # a scenario file or built-in name
    run: Path | None = None  # a run directory
    batch: Path | None = None  # a folder of runs
    trainings: Sequence[Path] = ()  # logs of trainings


def resolve(what: str) -> Opening:
    """Return what an argument stands for: a scenario, a run, a folder of runs, or trainings."""
    path = Path(what)
    if path.is_dir() and path.suffix != TRAINING:
        return _folder(path)
    if path.suffix in SUFFIXES:
        return Opening(trainings=logs_at(path))
    if what not in builtin_names() and not path.exists() and (logs := find_logs(path)):
        return Opening(trainings=logs)
    load(what)  # its problems are shown in full on the command line
    return Opening(scenario=what)


def _folder(path: Path) -> Opening:
    """Return what a folder stands for: a run, all runs below it, or all trainings in it."""
    try:
        runs = run_directories(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(runs) > 1 or (runs and not (runs[0] / "scenario.toml").exists()):  # one that a batch has only announced
        return Opening(batch=path)
    if not runs and (logs := find_logs(path)):
        return Opening(trainings=logs)
    if not runs and not find_below(path, "scenario.toml"):
        raise InputError(f"{path}: contains no run and no training; name another folder")
    return Opening(run=run_directory(path))
