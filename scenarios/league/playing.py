"""Plays the games of a league: in lockstep where the market allows it, otherwise one after another by SimPy."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial

import numpy as np

from fl.arrays import FloatArray
from fl.tracking import counting
from learning import evaluation
from learning.lockstep.markets import Lockstep
from learning.lockstep.play import TOGETHER, play, seating
from learning.seats import MarketFactory
from learning.statistics import area_under_curve
from scenarios.build import Shelf
from scenarios.league.league import Game, League
from scenarios.league.record import Record
from scenarios.plugins import packed
from scenarios.running.fanout import as_they_end

ENDED = "a process that played games ended: a plug-in or the system ended it; the same command plays the rest"
"""Why a league is not played to its end."""

Played = list[tuple[Game, list[float]]]
"""Games, and the AUC of all services in each."""


def play_games(
    league: League,
    games: Iterable[Game],
    record: Record,
    shelf: Shelf,
    *,
    jobs: int = 1,
    workers: int = 1,
) -> None:
    """Play the games that the record does not have. Those that are played together, or one by one, are kept when over.

    Args:
        league: who plays where.
        games: each once.
        record: gets the results.
        shelf: gives the data sets.
        jobs: processes that play at a time.
        workers: training threads of each.

    Raises:
        RunError: a game failed; those that are over are kept.
    """
    due = [game for game in games if not record.has(game)]
    if not due:
        return
    lockstep = league.why_one_by_one(shelf) is None
    size = TOGETHER if lockstep else 1
    batches = [due[start : start + size] for start in range(0, len(due), size)]
    done = 0
    task = partial(_play, league, lockstep=lockstep, workers=workers)
    with counting("games", len(due)) as step, closing(_results(task, batches, shelf, jobs)) as results:
        for played in results:
            record.add(played)
            done += len(played)
            step(done)
    record.sort()


def _results(
    task: Callable[..., Played], batches: Sequence[Sequence[Game]], shelf: Shelf, jobs: int
) -> Generator[Played, None, None]:
    """Yield the results of batches, each as soon as it is over.

    With plug-ins, one job has a process of its own, too, which is all that they can end.

    Raises:
        RunError: a process ended.
    """
    sent = packed()
    if not sent and (jobs == 1 or len(batches) == 1):
        yield from (task(batch, shelf) for batch in batches)
        return
    for _, played in as_they_end(task, batches, jobs, sent, ENDED):
        yield played


def _play(league: League, games: Sequence[Game], shelf: Shelf | None = None, *, lockstep: bool, workers: int) -> Played:
    factory = league.factory(shelf or Shelf(), workers=workers)
    played = _together(league, games, factory) if lockstep else _one_by_one(league, games, factory)
    return [(game, auc.tolist()) for game, auc in zip(games, played, strict=True)]


def _together(league: League, games: Sequence[Game], factory: MarketFactory) -> FloatArray:
    """Return the AUC [game, M] of games in lockstep."""
    seatings = [seating(factory, game.seed, game.visitor, league.entrant(game)) for game in games]
    markets = Lockstep([factory] * len(games), [game.seed for game in games])
    arrivals = [spec.arrival for spec in markets.kinds.markets[0].services]
    return area_under_curve(play(markets, seatings)[:, 0], arrivals)


def _one_by_one(league: League, games: Sequence[Game], factory: MarketFactory) -> FloatArray:
    """Return the AUC [game, M] of games that SimPy plays."""
    found = [
        evaluation.evaluate(factory, {game.visitor: league.entrant(game)}, [game.seed]).auc()[0, 0] for game in games
    ]
    return np.array(found)
