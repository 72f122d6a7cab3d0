"""Plays a league to its end: cross-play, ratings, exploitability."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from scenarios.build import Shelf
from scenarios.league.crossplay import cells, payoffs
from scenarios.league.exploits import Exploit, Responses, exploit, require_lockstep
from scenarios.league.league import ORACLE, Game, League
from scenarios.league.playing import ENDED, play_games
from scenarios.league.ratings import cycle, rate
from scenarios.league.record import Record
from scenarios.league.report import Standing
from scenarios.league.response import Search
from scenarios.plugins import packed
from scenarios.running.fanout import in_processes


def silent(_: str) -> None:
    """Report nothing."""


def play_league(
    league: League,
    folder: Path,
    shelf: Shelf,
    *,
    exploited: Sequence[str] = (),
    search: Search | None = None,
    jobs: int = 1,
    workers: int = 1,
    report: Callable[[str], None] = silent,
) -> Standing:
    """Play what the folder does not hold yet, and return what came of it all.

    Args:
        league: who plays what.
        folder: keeps games and best responses, so that an interrupted league continues.
        shelf: gives the data sets.
        exploited: labels of policies to which best responses are searched for; the league must have been made with
            ``oracle`` beside it.
        search: how hard.
        jobs: processes that play games at a time.
        workers: training threads of each.
        report: called with lines of progress; with plug-ins it is pickled, and called in another process, too.

    Raises:
        InputError: the folder cannot be used, or the market cannot be played in lockstep and a best response is asked
            for.
        RunError: a game failed; the same call plays the rest.
    """
    if exploited:
        require_lockstep(league, shelf)
    record = Record(folder, league, league.identity(shelf))
    games = list(league.games())
    games += [game for seed in league.seeds for it in exploited for game in league.visits(it, [ORACLE], seed)]
    play_games(league, list(dict.fromkeys(games)), record, shelf, jobs=jobs, workers=workers)
    respond = partial(_exploit, league, record.auc, folder, search or Search(), report)
    if exploited and (sent := packed()):  # a process of its own is all that plug-ins can end
        exploits = list(in_processes(respond, exploited, 1, sent, ENDED))
    else:
        exploits = [respond(it, shelf) for it in exploited]
    policies = league.policies
    table = payoffs(league, record.auc, policies, policies)
    return Standing(
        league, cells(league, record.auc, policies, policies), rate(policies, table), cycle(policies, table), exploits
    )


def _exploit(
    league: League,
    auc: Mapping[Game, float],
    folder: Path,
    search: Search,
    report: Callable[[str], None],
    resident: str,
    shelf: Shelf | None = None,
) -> Exploit:
    return exploit(league, resident, auc, Responses(folder), search, shelf or Shelf(), report)
