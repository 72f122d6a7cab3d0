"""The games that a league has played, in its folder: what is there is not played again.

games.csv has a line for each service whose accuracy counts: of a game with a visitor, the visitor's; of one in which
all play the same, each service's. A line is written when its game is over. league.json says what the games depend on.
"""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from fl.errors import InputError
from fl.files import append_own, asked_for
from scenarios.league.league import Game, League

COLUMNS = ("visitor", "resident", "seat", "seed", "auc")


WHOLE = frozenset({"flmarket", "market"})
"""What the games of every league depend on; see ``League.identity``."""


class Record:
    """The AUC of the games of a league, kept in its folder.

    Attributes:
        auc: by visitor, resident, seat and seed; where visitor and resident are the same, that of each seat in the
            market in which all play this policy.
    """

    def __init__(self, folder: Path, league: League, identity: Mapping[str, str]) -> None:
        """Read what is there.

        Args:
            folder: is made if it is not there.
            league: what is played.
            identity: see ``League.identity``.

        Raises:
            InputError: the folder holds something else, or the games of another league; or it cannot be written.
        """
        self._services = league.services
        self._games, about = folder / "games.csv", folder / "league.json"
        self.auc: dict[Game, float] = {}
        known: dict[str, str] = {}
        if about.exists():
            known = self._read(about)
            if self._games.exists() and (missing := sorted(WHOLE - known.keys())):
                raise InputError(
                    f"{about}: has no {missing[0]!r}, so it does not say what its games are of; "
                    "choose another folder with --out"
                )
            for what, value in identity.items():
                if known.get(what, value) != value:
                    raise InputError(
                        f"{folder}: holds games of another league: {what} is not the same; "
                        "choose another folder with --out"
                    )
        elif self._games.exists():
            raise InputError(f"{self._games}: is not a league's; choose another folder with --out")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made: {error.strerror}; choose another folder with --out") from error
        with asked_for(about) as file:
            file.write(json.dumps({**known, **identity}, indent=2, sort_keys=True) + "\n")
        kept = self._rows()
        with asked_for(self._games) as file:  # without the line that a killed process may have left unfinished
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows((*game, auc) for game, auc in kept.items())
        self.auc = kept

    def _read(self, about: Path) -> dict[str, str]:
        try:
            found = json.loads(about.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{about}: cannot be read: {error}; choose another folder with --out") from error
        if not isinstance(found, dict):
            raise InputError(f"{about}: is not a league's; choose another folder with --out")
        return found

    def _rows(self) -> dict[Game, float]:
        """Return what games.csv holds, up to the first line that is not whole."""
        found: dict[Game, float] = {}
        if not self._games.exists():
            return found
        try:
            lines = self._games.read_text(encoding="utf-8").splitlines(keepends=True)
        except (OSError, ValueError) as error:
            raise InputError(f"{self._games}: cannot be read: {error}") from error
        if lines and lines[0].strip() != ",".join(COLUMNS):
            raise InputError(f"{self._games}: is not a league's; choose another folder with --out")
        for row in csv.reader(line for line in lines[1:] if line.endswith("\n")):
            try:
                visitor, resident, seat, seed, auc = row
                game, value = Game(visitor, resident, seat, int(seed)), float(auc)
            except ValueError as error:
                raise InputError(f"{self._games}: {','.join(row)}: is not a line of a league's") from error
            if not 0 <= value <= 1:
                raise InputError(f"{self._games}: {','.join(row)}: {auc} is no accuracy")
            if found.setdefault(game, value) != value:
                raise InputError(f"{self._games}: {','.join(row)}: an earlier line has another accuracy for this game")
        return found

    def has(self, game: Game) -> bool:
        """Return whether a game has been played."""
        if game.seat:
            return game in self.auc
        return all(game._replace(seat=seat) in self.auc for seat in self._services)

    def add(self, played: Iterable[tuple[Game, list[float]]]) -> None:
        """Keep games: of each the AUC [M] of all services.

        Raises:
            InputError: they cannot be written.
        """
        found: dict[Game, float] = {}
        for game, auc in played:
            for seat, value in zip(self._services, auc, strict=True):
                line = game._replace(seat=seat)
                if game.seat in ("", seat) and line not in self.auc:  # a killed process may have written some seats
                    found[line] = value
        self.auc |= found
        text = "".join(f"{','.join(map(str, game))},{auc}\n" for game, auc in found.items())
        try:
            append_own(self._games, text)
        except OSError as error:
            raise InputError(f"{self._games}: cannot be written: {error.strerror}") from error
