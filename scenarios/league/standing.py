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
    league: League,  # who plays what
    folder: Path,  # keeps the games, so that an interrupted league continues
    shelf: Shelf,  # gives the data sets
    *,
    jobs: int = 1,  # processes that play games at a time
    workers: int = 1,  # training threads of each
) -> Standing:
    """Play what the folder does not hold yet, and return what came of it all."""
    record = Record(folder, league, league.identity(shelf))
    play_games(league, league.games(), record, shelf, jobs=jobs, workers=workers)
    policies = league.policies
    table = payoffs(league, record.auc, policies, policies)
    return Standing(
        league, cells(league, record.auc, policies, policies), rate(policies, table), cycle(policies, table)
    )
