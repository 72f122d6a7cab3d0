"""``flmarket replay``: opens a run in the terminal user interface."""

from pathlib import Path
from typing import Annotated

import typer

from flmarket.cli.arguments import Plugins, load_plugins
from flmarket.cli.launch import run_directory, start


def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory: complete, interrupted or growing.")],
    plugin: Plugins = None,
) -> None:
    """Watch a run again, round by round, in the terminal user interface."""
    load_plugins(plugin)
    start(str(run_directory(run)), Path("runs"))
