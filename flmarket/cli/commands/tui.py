"""``flmarket tui``: opens the terminal user interface, in the terminal or for a browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from flmarket.cli.arguments import Plugins, load_plugins
from flmarket.cli.launch import opening, start
from flmarket.core.installation import require_extra


def tui(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO|RUN|FOLDER|AGENT]",
            help="A scenario to run, a run to replay, a folder of runs or an agent's training to watch.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for run directories, old and new.")] = Path("runs"),
    plugin: Plugins = None,
    web: Annotated[bool, typer.Option("--web", help="Serve it to browsers on this machine.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port for --web, on the loopback address.")] = 8000,
) -> None:
    """Open the terminal user interface: configure scenarios, watch markets live, replay and compare runs."""
    load_plugins(plugin)
    if web:
        _serve(what, out, port, plugin or [])
    else:
        start(what, out)


def _serve(what: str | None, out: Path, port: int, plugins: Sequence[Path]) -> None:
    opening(what)  # its problems are shown here
    require_extra("web", "--web", "textual-serve", "aiohttp", "textual_serve")
    from flmarket.cli.web import serve

    options = [word for file in plugins for word in ("--plugin", str(file))]
    serve([*options, *([] if what is None else [what])], out, port)
