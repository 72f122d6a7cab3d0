"""The app as textual-serve starts it: without a terminal, drawing through pipes to the browser."""

import argparse
import sys
from pathlib import Path

from flmarket.cli.arguments import load_plugins
from flmarket.cli.launch import collect_rarely, resolve
from flmarket.core.crash import DEFECT, guarded
from tui.app import MarketApp
from tui.settings import settings_file


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plugin", type=Path, action="append")
    parser.add_argument("what", nargs="?")
    arguments = parser.parse_args()
    load_plugins(arguments.plugin)
    opening = resolve(arguments.what)._asdict()
    collect_rarely()
    app = MarketApp(**opening, out=arguments.out, settings=settings_file())
    app.run()
    return DEFECT if app.crashed else 0


if __name__ == "__main__":
    sys.exit(guarded(main))
