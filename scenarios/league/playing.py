"""Plays the games of a league, one after another or in several processes."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial

from fl.tracking import counting
from learning.evaluation import evaluate
from scenarios.build import Shelf
from scenarios.league.league import Game, League
from scenarios.league.record import Record
from scenarios.plugins import packed
from scenarios.running.fanout import as_they_end

ENDED = "a process that played games ended: a plug-in or the system ended it; the same command plays the rest"
"""Why a league is not played to its end."""

Played = tuple[Game, list[float]]  # A game, and the AUC of all services in it


def play_games(
    league: League,
    games: Iterable[Game],
    record: Record,
    shelf: Shelf,
    *,
    jobs: int = 1,
    workers: int = 1,
) -> None:
    """Play the games that the record does not have; each is kept when it is over."""
    due = [game for game in games if not record.has(game)]
    if not due:
        return
    task = partial(_play, league, workers=workers)
    with counting("games", len(due)) as step, closing(_results(task, due, shelf, jobs)) as results:
        for done, played in enumerate(results, start=1):
            record.add([played])
            step(done)
    record.sort()


def _results(
    task: Callable[..., Played], games: Sequence[Game], shelf: Shelf, jobs: int
) -> Generator[Played, None, None]:
    """Yield the results of games, each as soon as it is over.

    With plug-ins, one job has a process of its own, too, which is all that they can end.
    """
    sent = packed()
    if not sent and (jobs == 1 or len(games) == 1):
        yield from (task(game, shelf) for game in games)
        return
    for _, played in as_they_end(task, games, jobs, sent, ENDED):
        yield played


def _play(league: League, game: Game, shelf: Shelf | None = None, *, workers: int) -> Played:
    factory = league.factory(shelf or Shelf(), workers=workers)
    found = evaluate(factory, {game.visitor: league.entrant(game)}, [game.seed])
    return game, found.auc()[0, 0].tolist()
