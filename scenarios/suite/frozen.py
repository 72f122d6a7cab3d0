"""What the suite's version 1 consists of, read only if every byte of it is as it was frozen.

``version1/suite.toml`` says which markets and seeds there are, ``markets/`` has a scenario each, ``references.csv``
what other policies reach there, and ``manifest.json`` the SHA-256 of all these files. The manifest's own digest is
below. A later version of the suite gets a folder and a digest of its own; this one never changes.
"""

import csv
import hashlib
import io
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fl.errors import InputError
from fl.names import unknown
from scenarios.file.schema import Scenario
from scenarios.loader import load

VERSION = 1
DIGEST = "649cbbe7d9566a6e6471141de8251b7f96fb90c0a5f6a7e2ab1ab7f8ab832023"  # SHA-256 of version 1's manifest

FOLDER = Path(__file__).with_name("version1")
MANIFEST, REFERENCES, CONTENTS = "manifest.json", "references.csv", "suite.toml"

RESIDENT, VISITOR = "resident", "visitor"
MODES = (RESIDENT, VISITOR)
ALL = "all"  # the seat of a resident: every service plays the policy

MOST_SEATS = 3  # seats of a market that are visited: all, or this many, evenly spaced in the order of the services

FLOOR = "random"  # the policy whose score is 0

PRIVILEGED = ("oracle", "d-first")  # the policies whose score can be 1


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One run of the suite."""

    market: str  # its name
    mode: str  # ``resident`` or ``visitor``
    seat: str  # the service that a visitor plays; ``all`` for residents
    seed: int  # the market's seed

    @property
    def place(self) -> str:
        return f"{self.market}/{self.mode}/{self.seat}"


@dataclass(frozen=True, slots=True)
class SuiteMarket:
    """One market of the suite."""

    name: str  # the market's
    kind: str  # what it is one of: starved, contested,
    contested: bool  # whether more clients are wanted than there are cores
    scenario: Scenario  # its services play the policies that a visitor meets

    @property
    def visited(self) -> tuple[str, ...]:
        """The services whose seats a visitor takes, one in each run; none where there is nobody to visit."""
        names = [service.name for service in self.scenario.services]
        if len(names) == 1:
            return ()
        count = min(len(names), MOST_SEATS)
        return tuple(names[place * len(names) // count] for place in range(count))

    def seats(self, mode: str) -> tuple[str, ...]:
        """Return the seats that are played in a mode."""
        return (ALL,) if mode == RESIDENT else self.visited


@dataclass(frozen=True)
class Suite:
    """A version of the suite."""

    version: int  # its number
    digest: str  # of its manifest
    markets: Mapping[str, SuiteMarket]  # by name, in the order of tables
    seeds: tuple[int, ...]  # the market seeds
    rivals: tuple[str, ...]  # the unprivileged policies among the references
    references: Mapping[Cell, Mapping[str, float]]  # the AUC of each reference, by policy, where it was played

    def market(self, name: str) -> SuiteMarket:
        if name not in self.markets:
            raise InputError(unknown("market of the suite", name, list(self.markets)))
        return self.markets[name]

    def cells(
        self,
        modes: tuple[str, ...] = MODES,
        markets: tuple[str, ...] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> list[Cell]:
        """Return the runs that modes, markets and seeds amount to; all of the suite's where they are not given."""
        for mode in modes:
            if mode not in MODES:
                raise InputError(unknown("mode", mode, MODES))
        if others := [seed for seed in seeds or () if seed not in self.seeds]:
            count = len(seeds or ())
            hint = f"; --seeds {count} means seeds 0 to {count - 1}, one seed is --seed {count}"
            raise InputError(
                f"seed {others[0]} is none of the suite's; they are {', '.join(map(str, self.seeds))}"
                + (hint if count in self.seeds else "")
            )
        return [
            Cell(name, mode, seat, seed)
            for name in (self.markets if markets is None else dict.fromkeys(markets))
            for mode in modes
            for seat in self.market(name).seats(mode)
            for seed in (self.seeds if seeds is None else seeds)
        ]

    @cached_property
    def known(self) -> frozenset[Cell]:
        return frozenset(self.cells())


def read(folder: Path = FOLDER, digest: str = DIGEST) -> Suite:
    require_frozen(folder, digest)
    contents = _contents(folder)
    return Suite(
        version=contents["version"],
        digest=digest,
        markets=_markets(folder, contents),
        seeds=tuple(contents["seeds"]),
        rivals=tuple(contents["rivals"]),
        references=_references((folder / REFERENCES).read_text(encoding="utf-8")),
    )


def unfrozen(folder: Path) -> Suite:
    """Return a suite that is being made: its files are not checked, and it has no references yet."""
    contents = _contents(folder)
    seeds, rivals = tuple(contents["seeds"]), tuple(contents["rivals"])
    return Suite(contents["version"], "", _markets(folder, contents), seeds, rivals, {})


def require_frozen(folder: Path, digest: str) -> None:
    """Raise an InputError unless a folder holds the very files whose manifest has a digest."""
    try:
        manifest = (folder / MANIFEST).read_bytes()
        if hashlib.sha256(manifest).hexdigest() != digest:
            raise _changed(folder / MANIFEST)
        files = json.loads(manifest)
        for name, sha256 in files.items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != sha256:
                raise _changed(folder / name)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}; install flmarket again") from error
    for path in sorted((folder / "markets").iterdir()):
        if f"markets/{path.name}" not in files:
            raise InputError(f"{path}: is no file of the frozen suite; move it elsewhere")


def _changed(path: Path) -> InputError:
    return InputError(
        f"{path}: is not as version {VERSION} of the suite was frozen, so nothing played on it could be compared; "
        "restore the file, or install flmarket again"
    )


def manifest_of(folder: Path) -> bytes:
    """Return the manifest of a suite's files as they are."""
    paths = [folder / CONTENTS, folder / REFERENCES, *sorted((folder / "markets").iterdir())]
    files = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return (json.dumps(files, indent=2) + "\n").encode()


def _contents(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / CONTENTS).read_text(encoding="utf-8"))


def _markets(folder: Path, contents: Mapping[str, Any]) -> dict[str, SuiteMarket]:
    return {
        name: SuiteMarket(name, about["kind"], about["contested"], load(folder / "markets" / f"{name}.toml"))
        for name, about in contents["markets"].items()
    }


def _references(text: str) -> dict[Cell, dict[str, float]]:
    found = {}
    for row in csv.DictReader(io.StringIO(text)):
        cell = Cell(row.pop("market"), row.pop("mode"), row.pop("seat"), int(row.pop("seed")))
        found[cell] = {policy: float(auc) for policy, auc in row.items()}
    return found
