"""The suite's version 1, read only if its files are as they were frozen.

``version1/suite.toml`` lists the markets and seeds, ``markets/`` has a scenario each, ``references.csv`` the AUC of the
policies that others are measured by, and ``manifest.json`` the SHA-256 of these files. A later version gets a folder
and a digest of its own.
"""

import csv
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flmarket.core.errors import InputError
from flmarket.core.names import unknown
from scenarios.file.schema import Scenario
from scenarios.loader import load

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
class SuiteRun:
    """One run of the suite."""

    market: str
    mode: str
    seat: str  # the service that a visitor plays; ``all`` for residents
    seed: int  # the market's

    @property
    def place(self) -> str:
        return f"{self.market}/{self.mode}/{self.seat}"


@dataclass(frozen=True, slots=True)
class SuiteMarket:
    """One market of the suite."""

    name: str
    kind: str  # starved, contested, ...
    contested: bool  # whether more clients are wanted than there are cores
    scenario: Scenario  # its services play the policies that a visitor meets

    @property
    def visited(self) -> tuple[str, ...]:
        """The services whose seats a visitor takes, one in each run; none where there is no rival."""
        names = [service.name for service in self.scenario.services]
        if len(names) == 1:
            return ()
        count = min(len(names), MOST_SEATS)
        return tuple(names[place * len(names) // count] for place in range(count))

    def seats(self, mode: str) -> tuple[str, ...]:
        """Return the seats that are played in a mode."""
        return {RESIDENT: (ALL,), VISITOR: self.visited}[mode]


@dataclass(frozen=True)
class Suite:
    """A version of the suite."""

    version: int
    digest: str  # of its manifest
    markets: Mapping[str, SuiteMarket]  # by name, in the order of tables
    seeds: tuple[int, ...]  # the market seeds
    rivals: tuple[str, ...]  # the unprivileged policies among the references
    references: Mapping[SuiteRun, Mapping[str, float]]  # the AUC of each reference in each run, by policy

    def market(self, name: str) -> SuiteMarket:
        if name not in self.markets:
            raise InputError(unknown("market of the suite", name, list(self.markets)))
        return self.markets[name]

    def cells(
        self,
        modes: Sequence[str] = MODES,
        markets: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> list[SuiteRun]:
        """Return the runs of some modes, markets and seeds; of all where they are not given."""
        if others := [seed for seed in seeds or () if seed not in self.seeds]:
            raise InputError(f"seed {others[0]} is not one of the suite's: {', '.join(map(str, self.seeds))}")
        return [
            SuiteRun(name, mode, seat, seed)
            for name in (self.markets if markets is None else dict.fromkeys(markets))
            for mode in modes
            for seat in self.market(name).seats(mode)
            for seed in (self.seeds if seeds is None else seeds)
        ]


def read(folder: Path = FOLDER, digest: str = DIGEST) -> Suite:
    """Read a frozen suite; a file that has changed is an InputError."""
    require_frozen(folder / MANIFEST, digest)
    for name, sha256 in json.loads((folder / MANIFEST).read_bytes()).items():
        require_frozen(folder / name, sha256)
    references = {}
    with (folder / REFERENCES).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = SuiteRun(row.pop("market"), row.pop("mode"), row.pop("seat"), int(row.pop("seed")))
            references[cell] = {policy: float(auc) for policy, auc in row.items()}
    return replace(unfrozen(folder), digest=digest, references=references)


def unfrozen(folder: Path) -> Suite:
    """Return a suite as its files are now, without references."""
    contents = tomllib.loads((folder / CONTENTS).read_text(encoding="utf-8"))
    markets = {
        name: SuiteMarket(name, about["kind"], about["contested"], load(folder / "markets" / f"{name}.toml"))
        for name, about in contents["markets"].items()
    }
    return Suite(contents["version"], "", markets, tuple(contents["seeds"]), tuple(contents["rivals"]), {})


def require_frozen(path: Path, sha256: str) -> None:
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; install flmarket again") from error
    if found != sha256:
        raise InputError(f"{path}: is not as the suite was frozen; restore the file, or install flmarket again")


def require_outside(scenarios: Iterable[Scenario]) -> None:
    """Refuse to train on a market of the suite, whatever its name, its length, its backend and who plays."""
    reserved = {_market(market.scenario): name for name, market in read().markets.items()}
    for scenario in scenarios:
        if name := reserved.get(_market(scenario)):
            raise InputError(
                f"scenario {scenario.name!r} is the market {name!r} of the suite, on which agents are compared, so "
                "none may be trained on it; train in markets of your own, or in drawn ones"
            )


def _market(scenario: Scenario) -> str:
    return scenario.model_dump_json(
        exclude={
            "name": True,
            "description": True,
            "rounds": True,
            "training": True,
            "timeline": True,
            "services": {"__all__": {"name", "policy", "policy_options", "checkpoint"}},
        }
    )
