"""Plays a league to its end: cross-play and ratings."""

from pathlib import Path

from scenarios.build import Shelf
from scenarios.league.crossplay import cells, payoffs
from scenarios.league.league import League
from scenarios.league.playing import play_games
from scenarios.league.ratings import cycle, rate
from scenarios.league.record import Record
from scenarios.league.report import Standing


def play_league(
    league: League,
    folder: Path,
    shelf: Shelf,
    *,
    jobs: int = 1,
    workers: int = 1,
) -> Standing:
    """Play what the folder does not hold yet, and return what came of it all.

    Args:
        league: who plays what.
        folder: keeps the games, so that an interrupted league continues.
        shelf: gives the data sets.
        jobs: processes that play games at a time.
        workers: training threads of each.

    Raises:
        InputError: the folder cannot be used.
        RunError: a game failed; the same call plays the rest.
    """
    record = Record(folder, league, league.identity(shelf))
    play_games(league, league.games(), record, shelf, jobs=jobs, workers=workers)
    policies = league.policies
    table = payoffs(league, record.auc, policies, policies)
    return Standing(
        league, cells(league, record.auc, policies, policies), rate(policies, table), cycle(policies, table)
    )
