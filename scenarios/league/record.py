"""The games that a league has played, in its folder: what is there is not played again.

games.csv has a line for each service whose accuracy counts: of a game with a visitor, the visitor's; of one in which
all play the same, each service's. A line is written when its game is over, and when all are, they are sorted: a league
that was interrupted, or played by several processes, leaves the same bytes. league.json says what games depend on.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from fl.errors import InputError
from fl.files import append_own, asked_for, write_rows
from fl.locks import alone_in
from fl.names import suggest
from scenarios.league.league import Game, League
from scenarios.logs.outside import require_outside_runs

COLUMNS = ("visitor", "resident", "seat", "seed", "auc")

ABOUT = "league.json"

WHOLE = frozenset({"flmarket", "market"})  # what the games of every league depend on; see ``League.identity``


class Record:
    """The AUC of the games of a league, kept in its folder."""

    def __init__(self, folder: Path, league: League, identity: Mapping[str, str]) -> None:
        require_outside_runs(folder / ABOUT)
        self._services, self._folder = league.services, folder
        self._games = folder / "games.csv"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made: {error.strerror}; choose another folder with --out") from error
        with alone_in(folder):  # or what another process adds meanwhile would be lost
            known = self._known(identity)
            with asked_for(folder / ABOUT) as file:
                file.write(json.dumps(known, indent=2, sort_keys=True) + "\n")
            # by visitor, resident, seat and seed; where visitor and resident are the same, that of each seat in the
            # market in which all play this policy
            self.auc = self._rewritten(known)

    def _known(self, identity: Mapping[str, str]) -> dict[str, str]:
        """Return what the folder's games depend on, those that are to be played included. Errors as when it is made."""
        about = self._folder / ABOUT
        there = self._games.exists()
        if not about.exists():
            if there:
                raise InputError(
                    f"{self._games}: without {ABOUT} it does not say which league's it is; choose another folder with "
                    "--out"
                )
            return dict(identity)
        known = self._read(about)
        if there and (missing := sorted(WHOLE - known.keys())):
            raise InputError(
                f"{about}: has no {missing[0]!r}, so it does not say what its games are of; "
                "choose another folder with --out"
            )
        for what, value in identity.items():
            if known.get(what, value) != value:
                raise InputError(
                    f"{self._folder}: holds games of another league: {what} is not the same; "
                    "choose another folder with --out"
                )
        return {**known, **identity}

    def _read(self, about: Path) -> dict[str, str]:
        try:
            found = json.loads(about.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{about}: cannot be read: {error}; choose another folder with --out") from error
        if not isinstance(found, dict):
            raise InputError(f"{about}: is not a league's; choose another folder with --out")
        return found

    def sort(self) -> None:
        """Sort the games, those included that other processes have added meanwhile."""
        with alone_in(self._folder):
            self._rewritten(self._read(self._folder / ABOUT))

    def _rewritten(
        self,
        known: Mapping[str, str],  # what league.json says, and so the policies that may have played
    ) -> dict[Game, float]:
        """Return what games.csv holds, which is sorted, and has no line that a killed process left unfinished."""
        found: dict[Game, float] = {}
        if self._games.exists():
            try:
                lines = self._games.read_text(encoding="utf-8").split("\n")[:-1]
            except (OSError, ValueError) as error:
                raise InputError(f"{self._games}: cannot be read: {error}; choose another folder with --out") from error
            if lines and lines[0] != ",".join(COLUMNS):
                raise InputError(f"{self._games}:1: is not a league's; choose another folder with --out")
            for number, line in enumerate(lines[1:], start=2):
                try:
                    game, auc = self._game(line.split(","), known)
                    if found.setdefault(game, auc) != auc:
                        raise ValueError("an earlier line says otherwise")  # noqa: TRY301
                except ValueError as error:
                    remedy = "remove the line, and the same command plays the game again"
                    raise InputError(f"{self._games}:{number}: {error}; {remedy}") from None
        write_rows(self._games, COLUMNS, ((*game, found[game]) for game in sorted(found)))
        return found

    def _game(self, row: list[str], known: Mapping[str, str]) -> tuple[Game, float]:
        """Return a game and its accuracy, or raise a ValueError that says what is wrong with its line."""
        if len(row) != len(COLUMNS):
            raise ValueError(f"has {len(row)} values, not {len(COLUMNS)}")
        visitor, resident, seat, seed, auc = row
        for label in (visitor, resident):
            if f"policy {label}" not in known:
                raise ValueError(f"{label!r} is no policy of this league" + suggest(label, _labels(known)))
        if seat not in self._services:
            raise ValueError(f"{seat!r} is no seat of this league" + suggest(seat, self._services))
        if not (seed.isascii() and seed.isdigit()):
            raise ValueError(f"{seed!r} is no seed")
        try:
            value = float(auc)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise ValueError(f"{auc!r} is no accuracy")
        return Game(visitor, resident, seat, int(seed)), value

    def has(self, game: Game) -> bool:
        """Return whether a game has been played."""
        if game.seat:
            return game in self.auc
        return all(game._replace(seat=seat) in self.auc for seat in self._services)

    def add(self, played: Iterable[tuple[Game, list[float]]]) -> None:
        """Keep games: of each the AUC [M] of all services."""
        found: dict[Game, float] = {}
        for game, auc in played:
            for seat, value in zip(self._services, auc, strict=True):
                line = game._replace(seat=seat)
                if game.seat in ("", seat) and line not in self.auc:  # a killed process may have written some seats
                    found[line] = value
        self.auc |= found
        text = "".join(f"{','.join(map(str, game))},{auc}\n" for game, auc in found.items())
        try:
            with alone_in(self._folder):
                append_own(self._games, text)
        except OSError as error:
            raise InputError(f"{self._games}: cannot be written: {error.strerror}") from error


def _labels(known: Mapping[str, str]) -> list[str]:
    return [what.removeprefix("policy ") for what in known if what not in WHOLE]
