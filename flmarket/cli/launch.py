"""The common part of ``flmarket tui`` and ``flmarket replay``: finding the scenario or run, and starting the app."""

import codecs
import gc
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from flmarket.core.crash import DEFECT
from flmarket.core.errors import InputError
from flmarket.core.files import find_below
from flmarket.core.tracking import hide

if TYPE_CHECKING:
    from tui.app import MarketApp

TRAINING = ".training"  # what the name of the folder ends in that a training keeps its states in

MOST_SHOWN = 10  # runs that a message lists


def start(what: str | None, out: Path, round_: int = 0) -> None:
    """Start the app with what an argument stands for, a run from one of its rounds on, or at home."""
    require_terminal()
    if status := play(what, out, round_):
        sys.exit(status)


def require_terminal() -> None:
    """Refuse to start the app where it cannot be seen, and leave the terminal to it alone."""
    # Textual draws on standard error.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise InputError(
            "the terminal user interface needs a terminal, but standard input, output or error is not one; "
            "use `flmarket run`, or `flmarket tui --web` for a browser"
        )
    if codecs.lookup(sys.stderr.encoding).name != "utf-8":
        raise InputError(
            f"the terminal user interface draws in UTF-8, but this terminal is set to {sys.stderr.encoding}; "
            "set LANG, for example to C.UTF-8"
        )
    hide()  # the terminal is the app's
    # Until the app heeds them: what they raise is lost in some imports.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def play(what: str | None, out: Path, round_: int = 0) -> int:
    """Run the app with what an argument stands for, and return the exit status."""
    opening = resolve(what)._asdict()
    from tui.app import MarketApp
    from tui.settings import settings_file

    return run(MarketApp(**opening, round_=round_, out=out, settings=settings_file()))


def run(app: "MarketApp") -> int:
    """Run the app, and return the exit status."""
    collect_rarely()
    app.run()
    return DEFECT if app.crashed else app.return_code or 0


def collect_rarely() -> None:
    """Let Python look for garbage less often: each look at all objects holds keys up for a quarter of a second."""
    gc.set_threshold(10_000, 20, 20)


class Opening(NamedTuple):
    """The thing that the app opens: at most one of these."""

    scenario: str | None = None  # a scenario file or built-in name
    run: Path | None = None  # a run directory
    batch: Path | None = None  # a folder of runs
    trainings: Sequence[Path] = ()  # logs of trainings


def resolve(what: str | None) -> Opening:
    """Return what an argument stands for: a scenario, a run, a folder of runs, or trainings."""
    if what is None:
        return Opening()
    path = Path(what)
    if path.is_dir() and path.suffix != TRAINING:
        return _folder(path)
    from scenarios.loader import builtin_names, load
    from tui.state.training_log import SUFFIXES, find_logs, logs_at

    if path.suffix in SUFFIXES:
        return Opening(trainings=logs_at(path))
    if what not in builtin_names() and not path.exists() and (logs := find_logs(path)):
        return Opening(trainings=logs)
    load(what)  # its problems are shown in full on the command line
    return Opening(scenario=what)


def _folder(path: Path) -> Opening:
    """Return what a folder stands for: a run, all runs below it, or all trainings in it."""
    if (path / "scenario.toml").exists():
        return Opening(run=path)
    from tui.state.batch_folder import run_directories
    from tui.state.training_log import find_logs

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


def run_directory(path: Path) -> Path:
    """Return the run directory at ``path``, or the only one below it."""
    from scenarios.logs.directory import NOT_A_RUN
    from scenarios.logs.finding import require_directory

    require_directory(path)
    if (path / "scenario.toml").exists():
        return path
    found = [below.parent for below in find_below(path, "scenario.toml")]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"{path}: {NOT_A_RUN}")
    shown = "\n".join(f"  {run}" for run in found[:MOST_SHOWN])
    more = f"\n  ({len(found) - MOST_SHOWN} more)" if len(found) > MOST_SHOWN else ""
    raise InputError(f"{path}: contains {len(found)} runs; choose one:\n{shown}{more}")


def require_round(run: Path, number: int) -> None:
    """Refuse a round that a run directory does not have."""
    from scenarios.logs.reading import LogError, RunReader

    try:
        newest, _ = RunReader(run).last()
    except LogError as error:
        raise InputError(f"{run}: {error}") from error
    if number > newest:
        rounds = f"rounds 1 to {newest}" if newest else "no round"
        raise InputError(f"unknown round {number}; the run has {rounds}")


def on_the_screen(run: Path, round_: int, plugins: Sequence[Path]) -> str:
    """Return what to type after the program's name to see a round of a run."""
    loaded = (word for file in plugins for word in ("--plugin", str(file)))
    return shlex.join(["replay", str(run), "--round", str(round_), *loaded])
