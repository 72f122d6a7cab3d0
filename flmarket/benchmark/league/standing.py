"""The results of a league's games: the scores of each visitor among each resident, and the ratings that follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fl.arrays import FloatArray
from flmarket.benchmark.league.league import Game, League
from flmarket.benchmark.league.ratings import Rating, cycle, rate
from learning.statistics.intervals import Interval, holm, mean_interval, paired_interval


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
        found = payoffs(league, auc)
        cells = {
            (a, b): Cell(mean_interval(found[:, i, j]), paired_interval(found[:, i, j], found[:, j, j]))
            for j, b in enumerate(league.policies)
            for i, a in enumerate(league.policies)
        }
        return cls(league, cells, rate(league.policies, found), cycle(league.policies, found))

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
