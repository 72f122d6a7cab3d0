"""What ``flmarket tui`` and ``flmarket replay`` share: finding the scenario or run, and starting the app."""

import gc
import sys
from pathlib import Path

from fl.crash import DEFECT
from fl.errors import InputError
from fl.files import find_below

MOST_SHOWN = 10
"""Runs that a message lists."""


def start(what: str | None, out: Path) -> None:
    """Start the app with a scenario or a run, or at home.

    Raises:
        InputError: there is no terminal, or no such scenario or run.
    """
    # Textual draws on standard error.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise InputError(
            "the terminal user interface needs a terminal, but standard input, output or error is not one; "
            "use `flmarket run`, or `flmarket tui --web` for a browser"
        )
    scenario, run = resolve(what)
    from tui.app import MarketApp
    from tui.settings import settings_file

    collect_rarely()
    app = MarketApp(scenario=scenario, run=run, out=out, settings=settings_file())
    app.run()
    if app.crashed:
        sys.exit(DEFECT)


def collect_rarely() -> None:
    """Let Python look for garbage less often: each look at all objects holds keys up for a quarter of a second."""
    gc.set_threshold(10_000, 20, 20)


def resolve(what: str | None) -> tuple[str | None, Path | None]:
    """Return the scenario or the run directory that an argument stands for.

    Raises:
        InputError: it is neither, or the scenario has problems.
    """
    if what is None:
        return None, None
    if Path(what).is_dir():
        return None, run_directory(Path(what))
    from scenarios.loader import load

    load(what)  # its problems are shown in full on the command line
    return what, None


def run_directory(path: Path) -> Path:
    """Return the run directory at ``path``, or the only one below it.

    Raises:
        InputError: there is none, or several.
    """
    if not path.is_dir():
        raise InputError(f"{path}: no such directory")
    if (path / "scenario.toml").exists():
        return path
    found = [below.parent for below in find_below(path, "scenario.toml")]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"{path}: not a run directory; a run directory has a scenario.toml and the tables")
    shown = "\n".join(f"  {run}" for run in found[:MOST_SHOWN])
    more = f"\n  ({len(found) - MOST_SHOWN} more)" if len(found) > MOST_SHOWN else ""
    raise InputError(f"{path}: contains {len(found)} runs; choose one:\n{shown}{more}")
