"""The app as textual-serve starts it: without a terminal, drawing through pipes to the browser."""

import argparse
from pathlib import Path

from tui.app import MarketApp
from tui.commands.arguments import load_plugins
from tui.commands.launch import resolve


def main() -> None:
    """Run the app for one browser window."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plugin", type=Path, action="append")
    parser.add_argument("what", nargs="?")
    arguments = parser.parse_args()
    load_plugins(arguments.plugin)
    scenario, run = resolve(arguments.what)
    MarketApp(scenario=scenario, run=run, out=arguments.out).run()


if __name__ == "__main__":
    main()
