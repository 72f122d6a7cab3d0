"""Plays a league to its end, in this process or in several."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from fl.tracking import counting
from learning.evaluation import evaluate
from scenarios.build import Shelf
from scenarios.league.league import Game, League
from scenarios.league.record import Record
from scenarios.league.standing import Standing
from scenarios.plugins import packed
from scenarios.running.fanout import as_they_end

ENDED = "a process that played games ended: a plug-in or the system ended it; the same command plays the rest"

Played = tuple[Game, list[float]]  # a game, and the AUC of all services in it


def play_league(
    league: League,
    folder: Path,  # keeps the games, so that an interrupted league continues
    shelf: Shelf,  # gives the data sets
    *,
    jobs: int = 1,  # processes that play games at a time
    workers: int = 1,  # training threads of each
) -> Standing:
    """Play what the folder does not hold yet, and return what came of it all."""
    record = Record(folder, league.services, league.identity(shelf))
    play_games(league, league.games(), record, shelf, jobs=jobs, workers=workers)
    return Standing.of(league, record.auc)


def play_games(
    league: League, games: Iterable[Game], record: Record, shelf: Shelf, *, jobs: int = 1, workers: int = 1
) -> None:
    """Play the games that the record does not have; each is kept when it is over."""
    due = [game for game in games if not record.has(game)]
    if not due:
        return
    task = partial(_play, league, workers=workers)
    with counting("games", len(due)) as step, closing(_results(task, due, shelf, jobs)) as results:
        for done, (game, auc) in enumerate(results, start=1):
            record.add(game, auc)
            step(done)
    record.sort()


def _results(
    task: Callable[..., Played], games: Sequence[Game], shelf: Shelf, jobs: int
) -> Generator[Played, None, None]:
    """Yield the results of games, each as soon as it is over.

    With plug-ins, one job has a process of its own, too, which is all that they can end.
    """
    sent = packed()
    if sent or jobs > 1:
        yield from (played for _, played in as_they_end(task, games, jobs, sent, ENDED))
    else:
        yield from (task(game, shelf) for game in games)


def _play(league: League, game: Game, shelf: Shelf | None = None, *, workers: int) -> Played:
    factory = league.factory(shelf or Shelf(), workers=workers)
    found = evaluate(factory, {game.visitor: league.entrant(game)}, [game.seed])
    return game, found.auc()[0, 0].tolist()
