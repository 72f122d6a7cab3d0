"""``flmarket certify``: attacks a mechanism by search, and shows what was found."""

from pathlib import Path
from typing import Annotated

import typer

from des.mechanism import MECHANISMS
from flmarket.analysis.figures.drawing import save
from flmarket.benchmark.certify.certificate import AttackPlan
from flmarket.benchmark.certify.certificate import certify as certificate_of
from flmarket.benchmark.certify.certificate_figures import certificate_figures
from flmarket.benchmark.certify.sampling import Sizes
from flmarket.benchmark.certify.witness import write_witness
from flmarket.cli.arguments import Figures, Plugins, Quiet, load_plugins, mechanism_names, parse_options
from flmarket.cli.console import note, result
from flmarket.core.rich_console import show
from flmarket.core.text import counted
from scenarios.logs.directory import require_folder_place


def certify(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MECHANISM", help="A mechanism, as `flmarket plugins` lists it.", autocompletion=mechanism_names
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An option of the mechanism, such as side=services. Repeatable."),
    ] = None,
    services: Annotated[
        int | None, typer.Option(min=1, max=6, help="Services of each market; 2 to 4 if not given.")
    ] = None,
    clients: Annotated[
        int | None, typer.Option(min=1, max=8, help="Clients of each market; 2 to 5 if not given.")
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, max=6, help="Cores of each client; 1 or 2 if not given.")] = None,
    no_budgets: Annotated[bool, typer.Option("--no-budgets", help="Give services budgets that never bind.")] = False,
    markets: Annotated[int, typer.Option(min=1, max=1_000_000, help="Markets to sample.")] = 50,
    rounds: Annotated[
        int, typer.Option(min=1, max=1000, help="Rounds of each market, for a mechanism that remembers.")
    ] = 1,
    tries: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Misreports to try for each service and each client, at most.")
    ] = 200,
    sybils: Annotated[
        bool, typer.Option("--sybils", help="Also let each client come as two, each with half of its data.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the scenario files of the markets that show a gain.")] = Path(
        "certificates"
    ),
    figures: Figures = None,
    plugin: Plugins = None,
    _: Quiet = False,
) -> None:
    """Attack a mechanism: does misreporting pay, and do prices respect bids, offers and budgets?

    In small sampled markets each service reports other values, and each client other bids, while all others tell the
    truth; the misreports are searched for. Finding no gain proves nothing; a gain is proof: the market that shows the
    largest one is written as a scenario.
    """
    load_plugins(plugin)
    shape = Sizes(services, clients, cores, budgets=not no_budgets)
    plan = AttackPlan(mechanism, parse_options(option or []), shape, markets, tries, seed, rounds, sybils)
    MECHANISMS.create(mechanism, **plan.options)  # it may be unknown, or take no such options
    require_folder_place(out)
    if figures is not None:
        require_folder_place(figures)
    certificate = certificate_of(plan)
    largest = [gain for side in certificate.attacked for gain in certificate.gaining(side)[:1]]
    lines = [write_witness(plan, gain, out, plugin or []) for gain in largest]
    result(certificate.title())
    show(["property", "verdict", "what was found"], certificate.rows())
    for line in lines:
        result(line)
    if figures is not None:
        written = save(certificate_figures(certificate), figures)
        names = ", ".join(dict.fromkeys(path.stem for path in written))
        note(f"{figures}: {counted(len(written), 'file')} written: {names}")
