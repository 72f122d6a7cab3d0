"""Spreading of a budget for the whole run over the rounds that are left."""

import math

import numpy as np

from des.money import Micro, to_micro
from des.observation import Observation
from fl.arithmetic.elementary import power


def share_of_rounds_left(seen: Observation, haste: float) -> float | None:
    """Return what a round may cost of a budget for the whole run, money; None if the service has none.

    With R rounds left, this one included, it gets ``R ** haste / (1 + 2 ** haste + ... + R ** haste)`` of what is left.
    That solves the fluid relaxation of the rest of the run, all rounds alike: progress made now counts in all R rounds
    of an average over rounds, and if a round's progress grows like a power ``p`` of the money, below 1, the best share
    is in proportion to ``R ** (1 / (1 - p))``. So a haste of 1 is for logarithmic progress, 2 for the square root; more
    is for less concave progress, and 0 spreads the money evenly.
    """
    if seen.total_left is None:
        return None
    left = np.arange(1.0, seen.rounds - seen.round + 2)
    weights = power(left, np.full_like(left, haste))
    return seen.total_left * float(weights[-1]) / math.fsum(weights.tolist())


def limit(
    seen: Observation,  # the round
    haste: float,  # see ``share_of_rounds_left``
    # so much is paid of so much that is offered; offers may go beyond the share as far as that says
    offered: float = 1.0,
    paid: float = 1.0,
) -> Micro:
    """Return what may be offered in a round at most, micro-units: its budget, or its share of one for the whole run."""
    budget, share = to_micro(seen.budget), share_of_rounds_left(seen, haste)
    return budget if share is None else min(budget, to_micro(share * offered / paid))
