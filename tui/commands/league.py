"""``flmarket league``: policies against each other in all seats of a market, their ratings, and who exploits whom."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fl.errors import InputError
from tui.commands.arguments import (
    Assignments,
    Figures,
    Plugins,
    Quiet,
    Seed,
    Source,
    check_policies,
    load_all,
    load_plugins,
    seeds_of,
    seeds_option,
)
from tui.commands.console import note, result, stdout

if TYPE_CHECKING:
    from scenarios.league.report import Standing


def league(
    source: Source,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:CHECKPOINT]", help="A policy of the league. Repeat for each; at least two."),
    ] = None,
    seeds: Annotated[str | None, seeds_option("The markets' seeds", "0 to 9")] = None,
    seed: Seed = None,
    exploit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:CHECKPOINT]", help="Search for a best response to a policy of the league. Repeatable."
        ),
    ] = None,
    generations: Annotated[int, typer.Option(min=1, help="With --exploit: generations of the search.")] = 12,
    population: Annotated[int, typer.Option(min=2, help="With --exploit: rules in each generation.")] = 32,
    training_markets: Annotated[
        int, typer.Option(min=1, help="With --exploit: markets in which each rule plays every seat.")
    ] = 2,
    search_seed: Annotated[int, typer.Option(min=0, help="With --exploit: seed of the search.")] = 0,
    rounds: Annotated[int | None, typer.Option(help="Rounds to play, instead of the scenario's.")] = None,
    assignments: Assignments = None,
    plugin: Plugins = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that play games at a time.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Training threads of each process; cores divided by jobs if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for games and tables; what it holds is not played again.")] = Path(
        "league"
    ),
    figures: Figures = None,
    quiet: Quiet = False,
) -> None:
    """Let policies visit each other: who exploits whom, how do they rate, and how far can each be exploited?

    One service plays a policy, all others play another one, every seat in turn, in the same markets for all. On the
    surrogate this takes minutes; with real training every game takes as long as a run.
    """
    chosen_seeds, names = seeds_of(seeds, seed, range(10)), policy or []
    if len(dict.fromkeys(names)) < 2:
        raise InputError("a league needs at least two policies; give --policy for each")
    load_plugins(plugin)
    check_policies([*names, *(exploit or [])])
    (scenario,) = load_all([source], assignments or [], rounds)

    from scenarios.build import Shelf
    from scenarios.file.policy_choice import PolicyChoice
    from scenarios.judging.drawing import save
    from scenarios.league.league import ORACLE, League
    from scenarios.league.picture import picture
    from scenarios.league.report import write
    from scenarios.league.response import Search
    from scenarios.league.standing import play_league, silent
    from scenarios.logs.outside import require_folder_place
    from scenarios.running.batch import threads  # brings torch

    exploited = [PolicyChoice.parse(name, "--exploit").label for name in exploit or []]
    made = League.of(scenario, names, chosen_seeds, [ORACLE] if exploited else [])
    for label in exploited:
        if label not in made.policies:
            raise InputError(f"--exploit {label}: is not in the league; name it with --policy, too")
    if figures is not None:
        require_folder_place(figures)
    report = silent if quiet else note
    if made.trains:
        count = len(list(made.games()))
        report(f'{count} games with real training; --set training.backend="surrogate" takes minutes')
    try:
        standing = play_league(
            made,
            out,
            Shelf(),
            exploited=list(dict.fromkeys(exploited)),
            search=Search(generations, population, training_markets, search_seed),
            jobs=jobs,
            workers=threads(jobs, workers),
            report=report,
        )
    except KeyboardInterrupt:
        note("interrupted; the same command plays the rest")
        raise
    written = write(standing, out)
    if figures is not None:
        written += save([picture(standing)], figures)
    _show(standing)
    for path in written:
        result(str(path))


def _show(standing: "Standing") -> None:
    """Print the tables."""
    from rich import box
    from rich.table import Table

    from scenarios.league.report import exploits_table, gains_table, ratings_table, sentences, title

    console = stdout()
    result(title(standing))
    parts = {
        "Ratings at the equilibrium of the meta-game": ratings_table(standing),
        "Gains: what the visitor gets more than the resident in the same seats": gains_table(standing),
    }
    if standing.exploits:
        parts["Exploitability, lower bounds: gains among services that all play the policy"] = exploits_table(standing)
    for heading, (columns, rows) in parts.items():
        table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD)
        for place, name in enumerate(columns):
            table.add_column(name, justify="left" if place == 0 else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for sentence in sentences(standing):
        result(sentence)
