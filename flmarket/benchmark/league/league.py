"""A league: one market, its policies, the games that they play, and what these come to."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fl.arrays import FloatArray
from flmarket.benchmark.league.ratings import Rating, cycle, rate
from flmarket.core.errors import InputError
from flmarket.core.installation import versions
from learning.evaluation import Entrant
from learning.policy import POLICIES
from learning.seats import MarketFactory
from learning.statistics.intervals import Interval, holm, mean_interval, paired_interval
from scenarios.build import (
    Shelf,
    agents_of,
    backend_of,
    entrant,
    market_factory,
    require_no_new_players,
    require_one_point,
)
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.loader import digest, with_policy
from scenarios.plugin_files import plugins_of


class Game(NamedTuple):
    """One run of the market: a policy visits one seat, and all other services play the resident policy."""

    visitor: str  # label of a policy
    resident: str  # label of a policy
    seat: str  # the visitor's service, by its name; empty where the resident plays all seats
    seed: int  # the market's


@dataclass(frozen=True, slots=True)
class League:
    """A market, and the policies that play it."""

    scenario: Scenario  # the market
    played: Mapping[str, Scenario]  # the scenario with each policy in all seats, by the policy's label
    seeds: tuple[int, ...]  # the markets' seeds

    @classmethod
    def of(cls, scenario: Scenario, policies: Iterable[str], seeds: Sequence[int]) -> "League":
        """Return the league of some policies, ``NAME`` or ``NAME:CHECKPOINT``."""
        if len(scenario.services) < 2:
            raise InputError(
                f"a league needs rivals, but scenario {scenario.name!r} has one service; choose one with at least two"
            )
        require_no_new_players(scenario, "a league")
        require_one_point(scenario, "a league is played in", "give one value in a file of your own")
        chosen = {it.label: it for it in map(PolicyChoice.parse, policies)}
        return cls(scenario, {label: with_policy(scenario, str(it)) for label, it in chosen.items()}, tuple(seeds))

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(self.played)

    @property
    def services(self) -> tuple[str, ...]:
        return tuple(service.name for service in self.scenario.services)

    @property
    def trains(self) -> bool:
        return backend_of(self.scenario).trains

    def is_privileged(self, label: str) -> bool:
        """Return whether a policy sees what is private."""
        return POLICIES.load(self.played[label].services[0].policy).privileged

    def games(self) -> Iterator[Game]:
        """Yield the games of the cross-play, seed by seed."""
        for seed in self.seeds:
            for resident in self.policies:
                yield Game(resident, resident, "", seed)
                for visitor in self.policies:
                    if visitor != resident:
                        yield from (Game(visitor, resident, seat, seed) for seat in self.services)

    def entrant(self, game: Game) -> Entrant:
        """Return who plays a game."""
        played = [self.played[game.visitor if name == game.seat else game.resident] for name in self.services]
        return entrant([it.service(name) for it, name in zip(played, self.services, strict=True)])

    def factory(self, shelf: Shelf, *, workers: int = 1) -> MarketFactory:
        """Return what makes the market from a seed."""
        return market_factory(self.scenario, shelf, workers=workers)

    def identity(self, shelf: Shelf) -> dict[str, str]:
        """Return what the results of games depend on, as digests: of the market, and of each policy by its label."""
        digests = {"flmarket": versions()["flmarket"], "market": digest(self.scenario, shelf.digests(self.scenario))}
        for label, scenario in self.played.items():
            made_of = {"plugins": plugins_of(scenario), "agents": agents_of(scenario)}
            digests[f"policy {label}"] = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
        return digests


@dataclass(frozen=True, slots=True)
class Cell:
    """A visitor among residents."""

    payoff: Interval  # the visitor's AUC, its mean over all seats in turn and all seeds
    gain: Interval  # how much more that is than what the resident policy gets in the same seats when all play it


@dataclass(frozen=True)
class Standing:
    """The results of a league."""

    league: League  # what was played
    cells: dict[tuple[str, str], Cell]  # by visitor and resident, resident by resident
    ratings: list[Rating]  # the best first
    # three policies that beat each other in a circle, and the clearest interval of the narrowest victory
    cycle: tuple[tuple[str, str, str], Interval] | None

    @classmethod
    def of(cls, league: League, auc: Mapping[Game, float]) -> "Standing":
        """Return what came of games, given the AUC of each."""
        matrix = payoffs(league, auc)
        cells = {
            (a, b): Cell(mean_interval(matrix[:, i, j]), paired_interval(matrix[:, i, j], matrix[:, j, j]))
            for j, b in enumerate(league.policies)
            for i, a in enumerate(league.policies)
        }
        return cls(league, cells, rate(league.policies, matrix), cycle(league.policies, matrix))

    @cached_property
    def adjusted(self) -> dict[tuple[str, str], float]:
        """The p-value of each visitor's gain among other residents, adjusted for their number (Holm)."""
        others = {pair: it.gain.p for pair, it in self.cells.items() if pair[0] != pair[1]}
        return dict(zip(others, holm(list(others.values())), strict=True))

    def name(self, label: str) -> str:
        """Return a policy's name in tables, marked where it is privileged."""
        return f"{label}*" if self.league.is_privileged(label) else label


def payoffs(league: League, auc: Mapping[Game, float]) -> FloatArray:
    """Return the mean AUC over all seats, [seed, visitor, resident]."""

    def payoff(visitor: str, resident: str, seed: int) -> float:
        return float(np.mean([auc[Game(visitor, resident, seat, seed)] for seat in league.services]))

    return np.array([[[payoff(a, b, seed) for b in league.policies] for a in league.policies] for seed in league.seeds])
