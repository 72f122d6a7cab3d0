"""Who gets what among whom: the cross-play of a league, from the games that its record holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fl.arrays import FloatArray
from learning.intervals import Interval, mean_interval
from scenarios.league.league import Game, League


@dataclass(frozen=True, slots=True)
class Cell:
    """A visitor among residents."""

    visitor: str  # label of a policy
    resident: str  # label of a policy
    payoff: Interval  # the visitor's AUC, its mean over all seats in turn and all seeds
    gain: Interval  # how much more that is than what the resident policy gets in the same seats when all play it


def payoffs(league: League, auc: Mapping[Game, float], visitors: Sequence[str], residents: Sequence[str]) -> FloatArray:
    """Return the mean AUC over all seats, [seed, visitor, resident]."""
    return np.array(
        [
            [[np.mean([auc[Game(a, b, seat, seed)] for seat in league.services]) for b in residents] for a in visitors]
            for seed in league.seeds
        ]
    )


def cells(league: League, auc: Mapping[Game, float], visitors: Sequence[str], residents: Sequence[str]) -> list[Cell]:
    """Return every visitor among every resident, resident by resident. Arguments as in ``payoffs``."""
    found = payoffs(league, auc, visitors, residents)
    own = np.array([payoffs(league, auc, [b], [b])[:, 0, 0] for b in residents]).T
    return [
        Cell(a, b, mean_interval(found[:, i, j]), mean_interval(found[:, i, j] - own[:, j]))
        for j, b in enumerate(residents)
        for i, a in enumerate(visitors)
    ]
