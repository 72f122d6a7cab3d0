"""``flmarket fork``: continues a run from one of its rounds with something changed, and shows what differs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flmarket.core.errors import InputError
from tui.commands.arguments import Plugins, Quiet, load_plugins
from tui.commands.console import note, result, stdout
from tui.commands.launch import run_directory

if TYPE_CHECKING:
    from rich.table import Table

    from scenarios.fork import Fork

MOST_CLIENTS = 10  # clients that a table on the terminal lists: those whose income differs most


def fork(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.", show_default=False)],
    round_: Annotated[
        int, typer.Option("--round", "-n", metavar="N", help="The first round that is changed.", show_default=False)
    ],
    assignments: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="What is changed: services.NAME.budget, services.NAME.policy, market.mechanism, clients.cores or "
            "clients.offline. Repeatable.",
            show_default=False,
        ),
    ],
    each: Annotated[bool, typer.Option("--each", help="Make a fork of its own for each --set.")] = False,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Also write all measures and differences to a CSV file."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for run directories; that of the run if not given.", show_default=False)
    ] = None,
    plugin: Plugins = None,
    jobs: Annotated[int, typer.Option(min=1, help="Forks at a time, each in its own process.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Training threads of each fork; cores divided by jobs if not given.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, even if a fork is complete.")] = False,
    quiet: Quiet = False,
) -> None:
    """Continue a run from a round with something changed, and show what differs and from which round on.

    The earlier rounds are played once for all forks, or taken from a checkpoint. A fork is a run like any other.
    """
    from flmarket.core.files import write_rows
    from scenarios.fork import fork as play
    from scenarios.judging.differences import COLUMNS
    from scenarios.logs.outside import require_place

    load_plugins(plugin)
    given = [_parsed(text) for text in assignments]
    wishes: list[dict[str, Any]] = [{key: value} for key, value in given] if each else [dict(given)]
    if not each and len(wishes[0]) < len(given):
        raise InputError("--set changes a key twice; with --each, every --set is a fork of its own")
    if csv is not None:
        require_place(csv)
    try:
        forks = play(
            run_directory(run), round_, wishes, out=out, jobs=jobs, workers=workers, fresh=fresh, progress=not quiet
        )
    except KeyboardInterrupt:
        note("interrupted; the same command continues each fork from its last checkpoint")
        raise
    if csv is not None:  # first, as whoever reads the rest may stop reading
        columns = ("changes", *COLUMNS)
        write_rows(csv, columns, ((it.name, *row.row()) for it in forks for row in it.comparison.differences()))
    for found in forks:
        _show(found, round_)
    if csv is not None:
        result(f"{csv}: all measures and differences")


def _parsed(text: str) -> tuple[str, Any]:
    """Return the key and the value of a ``--set``, as ``flmarket run`` reads them."""
    from scenarios.file.addresses import AddressError
    from scenarios.file.overrides import read_value

    key, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--set {text}: must be KEY=VALUE, such as services.mnist.budget=10")
    try:
        return key.strip(), read_value(value.strip())
    except AddressError as error:
        raise InputError(f"--set {text}: {error}") from error


def _show(fork: "Fork", round_: int) -> None:
    result(f"{fork.name} from round {round_} on: {fork.run.directory.path}")
    for sentence in fork.comparison.sentences():
        result(f"  {sentence}")
    if fork.comparison.first is not None:
        stdout().print(_table(fork))


def _table(fork: "Fork") -> "Table":
    """Return what differs of the services, and of the clients whose income differs most."""
    from rich.table import Table

    table = Table(title="The fork less the original")
    for name in ("", "measure"):
        table.add_column(name, overflow="fold")
    for name in ("original", "fork", "difference"):
        table.add_column(name, justify="right")
    table.add_column("rounds that differ", overflow="fold")
    all_ = [it for it in fork.comparison.differences() if it.rounds]
    incomes = [it for it in all_ if it.measure == "income"]
    shown = {it.name for it in sorted(incomes, key=lambda it: -abs(it.amount or 0))[:MOST_CLIENTS]}
    group = None
    for it in all_:
        if it.kind == "client" and it.name not in shown:
            continue
        if group not in {None, (it.kind, it.name)}:
            table.add_section()
        head = "" if group == (it.kind, it.name) else it.name if it.kind == "service" else f"client {it.name}"
        table.add_row(head, it.measure, *it.texts(), it.spans)
        group = it.kind, it.name
    if more := len({it.name for it in all_ if it.kind == "client"}) - len(shown):
        table.caption = f"{more} more clients differ; --csv FILE lists all"
    return table
