"""``flmarket league``: policies against each other in all seats of a market, and their ratings."""

from pathlib import Path
from typing import Annotated

import typer

from flmarket.analysis.figures.drawing import save
from flmarket.benchmark.league.league import League
from flmarket.benchmark.league.record import play_league
from flmarket.benchmark.league.report import gains_table, picture, ratings_table, sentences, title, write
from flmarket.cli.arguments import (
    Assignments,
    Figures,
    Plugins,
    Quiet,
    Seed,
    Source,
    load_plugins,
    policy_names,
    seeds_of,
    seeds_option,
)
from flmarket.cli.console import interruptible, note, result
from flmarket.cli.loading import check_policies, load_all
from flmarket.core.errors import InputError
from flmarket.core.rich_console import draw, stdout
from scenarios.logs.directory import require_folder_place
from scenarios.running.run_options import threads


def league(
    source: Source,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:CHECKPOINT]",
            help="A policy of the league. Repeat for each; at least two.",
            autocompletion=policy_names,
        ),
    ] = None,
    seeds: Annotated[str | None, seeds_option("The markets' seeds", "0 to 9")] = None,
    seed: Seed = None,
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
    """Let policies visit each other: who exploits whom, and how do they rate?

    One service plays a policy, all others play another one, every seat in turn, in the same markets for all. On the
    surrogate this takes minutes; with real training every game takes as long as a run.
    """
    chosen_seeds, names = seeds_of(seeds, seed, range(10)), policy or []
    if len(set(names)) < 2:
        raise InputError("a league needs at least two policies; give --policy for each")
    load_plugins(plugin)
    check_policies(names)
    (scenario,) = load_all([source], assignments or [], {} if rounds is None else {"rounds": rounds})
    contest = League.of(scenario, names, chosen_seeds)
    if figures is not None:
        require_folder_place(figures)
    if contest.trains and not quiet:
        count = len(list(contest.games()))
        note(f'{count} games with real training; --set training.backend="surrogate" takes minutes')
    with interruptible("plays the rest"):
        standing = play_league(contest, out, jobs=jobs, workers=threads(jobs, workers))
    written = write(standing, out)
    if figures is not None:
        written += save([picture(standing)], figures)
    result(title(standing))
    draw(stdout(), ratings_table(standing))
    draw(stdout(), gains_table(standing))
    for text in [*sentences(standing), *map(str, written)]:
        result(text)
