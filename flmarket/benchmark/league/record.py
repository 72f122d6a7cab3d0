"""Plays a league, and keeps its games in its folder; these are not played again.

games.csv has a line for each service whose accuracy counts: of a game with a visitor, the visitor's; of one in which
all play the same, each service's. Lines are appended as games end and sorted when all have ended, so that every way of
playing a league leaves the same bytes. league.json has digests of the market and the policies.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from functools import partial
from io import StringIO
from pathlib import Path

from flmarket.benchmark.league.league import Game, League, Standing
from flmarket.core.errors import InputError
from flmarket.core.files import alone_in, asked_for, write_rows
from learning.evaluation import evaluate
from scenarios.build import Shelf
from scenarios.logs.directory import require_folder_place
from scenarios.plugin_files import packed
from scenarios.running.pool import play_games

COLUMNS = ["visitor", "resident", "seat", "seed", "auc"]

ELSEWHERE = "choose another folder"


class Record:
    """The games of a league, kept in its folder."""

    def __init__(self, folder: Path, services: Sequence[str], identity: Mapping[str, str]) -> None:
        require_folder_place(folder)
        self._folder, self._services, self._games = folder, services, folder / "games.csv"
        with alone_in(folder):
            self._identify(folder / "league.json", identity)
        # the AUC of each line: by visitor, resident, seat and seed
        self.auc = self.sort()

    def _identify(self, about: Path, identity: Mapping[str, str]) -> None:
        """Refuse a folder with games of another league, and add the digests of policies that are new in this one."""
        known = {}
        if about.exists() or self._games.exists():
            try:
                known = dict(json.loads(about.read_bytes()))
            except (OSError, ValueError, TypeError) as error:
                raise InputError(f"{about}: cannot be read: {error}; {ELSEWHERE}") from error
        for what, digest in identity.items():
            if known.get(what, digest) != digest:
                raise InputError(f"{self._folder}: holds games of another league: {what} differs; {ELSEWHERE}")
        with asked_for(about) as file:
            file.write(json.dumps({**known, **identity}, indent=2, sort_keys=True) + "\n")

    def sort(self) -> dict[Game, float]:
        """Sort the lines of the file, those included that other processes have added; return them."""
        with alone_in(self._folder):
            try:
                text = self._games.read_text(encoding="utf-8") if self._games.exists() else ""
                whole = StringIO(text[: text.rfind("\n") + 1])  # a killed process may have left half a line
                games = {
                    Game(row["visitor"], row["resident"], row["seat"], int(row["seed"])): float(row["auc"])
                    for row in csv.DictReader(whole)
                }
            except (OSError, ValueError, LookupError, TypeError) as error:
                raise InputError(f"{self._games}: cannot be read as the games of a league; {ELSEWHERE}") from error
            write_rows(self._games, COLUMNS, ((*game, games[game]) for game in sorted(games)))
        return games

    def has(self, game: Game) -> bool:
        return all(line in self.auc for line in self._lines(game))

    def add(self, game: Game, auc: Sequence[float]) -> None:
        """Keep the AUC [M] of all services in a game."""
        by_seat = dict(zip(self._services, auc, strict=True))
        lines = {line: by_seat[line.seat] for line in self._lines(game) if line not in self.auc}
        self.auc |= lines
        try:
            with alone_in(self._folder), self._games.open("a", encoding="utf-8") as file:
                file.writelines(f"{','.join(map(str, line))},{auc}\n" for line, auc in lines.items())
        except OSError as error:
            raise InputError(f"{self._games}: cannot be written: {error.strerror}") from error

    def _lines(self, game: Game) -> list[Game]:
        return [game] if game.seat else [game._replace(seat=seat) for seat in self._services]


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
        play_games("games", due, partial(_play, league, workers), record.add, jobs, packed())
        record.sort()
    return Standing.of(league, record.auc)


def _play(league: League, workers: int, game: Game) -> list[float]:
    """Return the AUC [M] of all services in a game."""
    results = evaluate(league.factory(Shelf(), workers=workers), {game.visitor: league.entrant(game)}, [game.seed])
    return list(results.auc()[0, 0].tolist())
