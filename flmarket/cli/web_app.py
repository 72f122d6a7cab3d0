"""The app as textual-serve starts it: without a terminal, drawing through pipes to the browser."""

import argparse
import sys
from pathlib import Path

from flmarket.cli.arguments import load_plugins
from flmarket.cli.launch import play
from flmarket.core.crash import guarded
from flmarket.core.installation import end_with_parent


def main() -> int:
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
