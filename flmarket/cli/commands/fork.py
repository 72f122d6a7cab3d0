"""``flmarket fork``: continues a run from one of its rounds with something changed, and shows what differs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flmarket.analysis.log_frames import write_frame
from flmarket.analysis.results.measures import MEASURES
from flmarket.analysis.what_if.fork import Fork
from flmarket.analysis.what_if.fork import fork as play
from flmarket.cli.arguments import Plugins, Quiet, load_plugins, options_of
from flmarket.cli.console import interruptible, result
from flmarket.core.errors import InputError
from flmarket.core.files import asked_for
from flmarket.core.rich_console import draw, stdout
from flmarket.core.text_table import TextTable
from scenarios.file.overrides import AddressError, parse_assignment
from scenarios.logs.directory import require_place
from scenarios.logs.finding import run_directory
from scenarios.running.run_options import PlayOptions

if TYPE_CHECKING:
    from pandas import DataFrame


MOST_CLIENTS = 10  # clients that a table on the terminal lists: those whose income differs most


@options_of(PlayOptions)
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
            help="The change: services.NAME.budget, services.NAME.policy, market.mechanism, clients.cores or "
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
    quiet: Quiet = False,
    *,
    options: PlayOptions,
) -> None:
    """Continue a run from a round with something changed, and show what differs and from which round on.

    A fork is a run like any other. It begins at the original's newest checkpoint before that round, or at round 1.
    """
    from pandas import concat

    load_plugins(plugin)
    pairs = [_parsed(text) for text in assignments]
    wishes: list[dict[str, Any]] = [{key: value} for key, value in pairs] if each else [dict(pairs)]
    if not each and len(wishes[0]) < len(pairs):
        raise InputError("--set changes a key twice; with --each, every --set is a fork of its own")
    if csv is not None:
        require_place(csv)
    with interruptible("continues each fork from its last checkpoint"):
        forks = play(run_directory(run), round_, wishes, options, out, progress=not quiet)
    if csv is not None:  # first, as a reader of the rest (``| head``) may stop reading
        tables = {it.name: it.differences for it in forks}
        with asked_for(csv) as file:
            write_frame(concat(tables, names=["changes"]).droplevel(1).reset_index(), file)
    for one in forks:
        _show(one, round_)
    if csv is not None:
        result(f"{csv}: all measures and differences")


def _parsed(text: str) -> tuple[str, Any]:
    """Return the key and the value of a ``--set``, as ``flmarket run`` reads them."""
    try:
        return parse_assignment(text)
    except AddressError as error:
        raise InputError(f"--set {text}: {error}") from error


def _show(fork: Fork, round_: int) -> None:
    result(f"{fork.name} from round {round_} on: {fork.run.directory.path}")
    for sentence in fork.comparison.sentences():
        result(f"  {sentence}")
    if fork.comparison.first is not None:
        _draw(fork.differences)


def _draw(differences: "DataFrame") -> None:
    """Draw what differs of the services, and of the clients whose income differs most."""
    differences = differences[differences["rounds"] != ""]
    incomes = differences[differences["measure"] == "income"]
    shown = incomes["name"][incomes["difference"].abs().nlargest(MOST_CLIENTS).index]
    header = ["", "original", "fork", "difference", "rounds that differ"]
    lines = []
    chosen = differences[(differences["kind"] == "service") | differences["name"].isin(shown)]
    for (kind, name), rows in chosen.groupby(["kind", "name"], sort=False):
        lines.append([str(name) if kind == "service" else f"client {name}", *("" for _ in header[1:])])
        row: Any
        for row in rows.itertuples():
            values = (_text(row.measure, value) for value in (row.original, row.fork))
            lines.append([f"  {row.measure}", *values, _text(row.measure, row.difference, "+"), row.rounds])
    draw(stdout(), TextTable("The fork less the original", header, lines))
    if more := differences["name"][differences["kind"] == "client"].nunique() - len(shown):
        result(f"{more} more clients differ; --csv FILE lists all")


def _text(measure: str, value: float, sign: str = "") -> str:

    digits = {it.name: it.digits for it in MEASURES}.get(measure, 2 if measure == "income" else 0)
    return "-" if value != value else f"{round(value, digits) + 0.0:{sign}.{digits}f}"
