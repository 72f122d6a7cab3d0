"""The start of the terminal user interface, in a terminal or for a browser, with what an argument names."""

import codecs
import gc
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flmarket.cli.arguments import load_plugins
from flmarket.core.crash import DEFECT, guarded
from flmarket.core.errors import InputError
from flmarket.core.installation import end_with_parent
from flmarket.core.tracking import hide

if TYPE_CHECKING:
    from tui.app import MarketApp


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
    opens = opening(what)
    from tui.app import MarketApp
    from tui.settings import settings_file

    return run(MarketApp(**opens, round_=round_, out=out, settings=settings_file()))


def opening(what: str | None) -> Mapping[str, Any]:
    """Return what the app opens for an argument, as its keyword arguments."""
    if what is None:
        return {}
    if (Path(what) / "scenario.toml").exists():
        return {"run": Path(what)}
    from flmarket.cli.tui_argument import resolve  # and with it what reading a scenario takes: 300 ms

    return resolve(what)._asdict()


def run(app: "MarketApp") -> int:
    """Run the app, and return the exit status."""
    collect_rarely()
    app.run()
    return DEFECT if app.crashed else app.return_code or 0


def collect_rarely() -> None:
    """Let Python look for garbage less often: each look at all objects holds keys up for a quarter of a second."""
    gc.set_threshold(10_000, 20, 20)


def main() -> int:
    """Run the app as textual-serve starts it: without a terminal, drawing through pipes to the browser."""
    import argparse  # takes its time, and is for this alone

    end_with_parent()  # the server may be killed
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plugin", type=Path, action="append")
    parser.add_argument("what", nargs="?")
    arguments = parser.parse_args()
    load_plugins(arguments.plugin)
    return play(arguments.what, arguments.out)


if __name__ == "__main__":
    sys.exit(guarded(main))
