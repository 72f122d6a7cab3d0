"""Plays a league to its end, in this process or in several."""

from contextlib import closing
from functools import partial
from pathlib import Path

from flmarket.benchmark.league.league import Game, League
from flmarket.benchmark.league.record import Record
from flmarket.benchmark.league.standing import Standing
from flmarket.core.tracking import counting
from learning.evaluation import evaluate
from scenarios.build import Shelf
from scenarios.plugin_files import packed
from scenarios.running.fanout import as_they_end

ENDED = "a process that played games ended: a plug-in or the system ended it; the same command plays the rest"


def play_league(
    league: League,
    folder: Path,  # keeps the games, so that an interrupted league continues
    *,
    jobs: int = 1,  # processes that play games at a time
    workers: int = 1,  # training threads of each
) -> Standing:
    """Play what the folder does not hold yet, and return what came of it all."""
    record = Record(folder, league.services, league.identity(Shelf()))
    due = [game for game in league.games() if not record.has(game)]
    if due:
        task = partial(_play, league, workers)
        with counting("games", len(due)) as step, closing(as_they_end(task, due, jobs, packed(), ENDED)) as results:
            for done, (place, auc) in enumerate(results, start=1):
                record.add(due[place], auc)
                step(done)
        record.sort()
    return Standing.of(league, record.auc)


def _play(league: League, workers: int, game: Game) -> list[float]:
    """Return the AUC [M] of all services in a game."""
    found = evaluate(league.factory(Shelf(), workers=workers), {game.visitor: league.entrant(game)}, [game.seed])
    return list(found.auc()[0, 0].tolist())
