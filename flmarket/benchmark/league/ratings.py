"""Ratings at the equilibrium of the meta-game: Nash averaging.

Source: Balduzzi et al., "Re-evaluating evaluation", NeurIPS 2018. Two people each choose a policy and play the
symmetric zero-sum game with the payoffs A[i, j], what i gets among j less what j gets among i. Its equilibrium of the
highest entropy, p, says against which policies it matters to be good, and A p rates each policy against these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from fl.arithmetic.streams import stream
from fl.arrays import BoolArray, FloatArray
from learning.statistics.intervals import Interval, mean_interval

RESAMPLES = 200  # how often seeds are resampled to see which policies stay in the equilibrium


@dataclass(frozen=True, slots=True)
class Rating:
    """The rating of one policy at the equilibrium of the meta-game."""

    policy: str  # its name
    share: float  # p, its part of the equilibrium
    rating: Interval  # (A p) of the policy, with the t interval of its mean over seeds, p held fixed; at most 0
    stays: float  # the share of resamples of the seeds in whose equilibrium it has a part; NaN for a single seed


def rate(
    policies: Sequence[str],  # [n] their names
    payoffs: FloatArray,  # [seed, n, n] what the row's policy gets as a visitor among services that play the column's
) -> list[Rating]:
    """Return the ratings of policies, the best first."""
    games = payoffs - np.swapaxes(payoffs, 1, 2)
    share = equilibrium(games.mean(axis=0))
    values = games @ share
    seeds = len(payoffs)
    stays = np.full(len(policies), np.nan)
    if seeds > 1:
        drawn = stream(0, "league", "resamples").integers(seeds, size=(RESAMPLES, seeds))
        stays = np.mean([support(games[chosen].mean(axis=0)) for chosen in drawn], axis=0)
    ratings = [
        Rating(policy, float(share[i]), mean_interval(values[:, i]), float(stays[i]))
        for i, policy in enumerate(policies)
    ]
    return sorted(ratings, key=lambda it: -it.rating.estimate)


def cycle(policies: Sequence[str], payoffs: FloatArray) -> tuple[tuple[str, str, str], Interval] | None:
    """Return three policies of which each beats the next, and the last one the first; None if there are none."""
    games = payoffs - np.swapaxes(payoffs, 1, 2)
    margins = {(i, j): mean_interval(games[:, i, j]) for i, j in permutations(range(len(policies)), 2)}
    beats = {pair: margin for pair, margin in margins.items() if margin.low > 0}
    circles = {
        (i, j, k): min((beats[i, j], beats[j, k], beats[k, i]), key=lambda it: it.low)
        for i, j, k in permutations(range(len(policies)), 3)
        if i == min(i, j, k) and {(i, j), (j, k), (k, i)} <= beats.keys()
    }
    if not circles:
        return None
    i, j, k = clearest = max(circles, key=lambda it: circles[it].low)
    return (policies[i], policies[j], policies[k]), circles[clearest]


def support(game: FloatArray) -> BoolArray:
    """Return which policies have a part in some equilibrium of a symmetric zero-sum game, [n]."""
    share, slack, _ = _complementary(game)
    part: BoolArray = share > slack
    return part


def equilibrium(
    game: FloatArray,  # [n, n] payoffs of the row against the column, antisymmetric
) -> FloatArray:
    """Return the equilibrium [n] of the highest entropy of a symmetric zero-sum game.

    A linear program finds one equilibrium in which every policy either has a part or is worse than the equilibrium
    (``_complementary``): one that has no part there has none in any. Among the others, entropy is maximised under
    A p <= 0 by its dual, which is smooth: p is proportional to exp(-A' y) with multipliers y >= 0 that minimise
    log sum exp(-A' y).
    """
    from scipy.optimize import minimize  # takes its time to import
    from scipy.special import softmax

    first, slack, scaled = _complementary(game)
    part = first > slack
    if part.sum() == 1:
        return part.astype(np.float64)
    among = scaled[:, part]

    def dual(multipliers: FloatArray) -> tuple[float, FloatArray]:
        exponents = -(multipliers @ among)
        top = exponents.max()  # scipy's logsumexp rounds otherwise, and ratings would differ in the ninth digit
        return float(top + np.log(np.exp(exponents - top).sum())), -(among @ softmax(exponents))

    start = np.zeros(len(game))
    bounds = [(0.0, None)] * len(game)
    tight = {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 20_000, "maxfun": 40_000}
    solved = minimize(dual, start, jac=True, method="L-BFGS-B", bounds=bounds, options=tight)
    share = np.zeros(len(game))
    share[part] = softmax(-(solved.x @ among))
    # Where the dual has not converged, the program's equilibrium is one, if not that of the highest entropy.
    return share if (scaled @ share).max() <= _TOLERANCE else first


_TOLERANCE = 1e-5  # how far above 0 a policy may be against an equilibrium, in parts of the largest payoff


def _complementary(game: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return an equilibrium p [n], what each policy lacks against it (-A p) [n], and the game, scaled to at most 1.

    Maximises t under p_i + (-A p)_i >= t, A p <= 0, sum p = 1, p >= 0. In a symmetric zero-sum game some equilibrium
    has t > 0 (Goldman and Tucker, "Theory of linear programming", 1956), and p_i (-A p)_i = 0 for all i, so that
    exactly one of the two is positive.
    """
    from scipy.optimize import linprog

    size = len(game)
    largest = float(np.abs(game).max())
    scaled = game / largest if largest > 0 else game
    one, column = np.eye(size), np.ones((size, 1))
    solved = linprog(
        np.concatenate([np.zeros(size), [-1.0]]),
        A_ub=np.block([[scaled, 0 * column], [scaled - one, column]]),
        b_ub=np.zeros(2 * size),
        A_eq=np.concatenate([np.ones(size), [0.0]])[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * (size + 1),
        method="highs",
    )
    p = np.maximum(solved.x[:size], 0.0)
    p = p / p.sum()
    return p, -(scaled @ p), scaled
