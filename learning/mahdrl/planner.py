"""Eq. (7) for the set-valued critic: the clients and prices that promise the most.

A set S of served clients is worth V(S) = mean of q over S + kappa(|S|), and an offer is served with probability
w(price). The planner fills the budget one client at a time (the paper's serial selection) in several orders, each of
which weighs worth against price differently, and keeps the best beginning of the best order.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from des.money import MICRO, to_micro
from des.observation import Observation, Offer
from fl.arithmetic.elementary import log
from fl.arithmetic.ordered_sums import mean, quantile
from fl.arrays import BoolArray, FloatArray, IntArray

SHADOW_PRICES = (0.0, 0.15, 0.4, 1.0, 2.5)
"""Values of money that are tried, in standard deviations of q per mean price: 0 ignores prices."""

ANCHORS = (0.0, 0.5)  # quantiles of q that count as worth nothing when q is weighed against the chance to be served

RIVAL_LEVELS = 6
"""The number of prices just above a rival's bid that are considered for a client, the highest ones. If K is larger, K
are: the one that suffices against rivals who pay their bids is then among them."""

OVERBIDS = (1.08, 1.2)
"""Prices considered beyond the highest rival's bid, as factors of it, against rivals that overbid as well."""

FAR, FEW_CORES = (1.5, 2.0, 3.0), 5
"""The same for agents that look further, where clients have at most so many cores for each service together. There all
may have more money than they can spend at bids, and outbid each other."""


@dataclass(frozen=True, slots=True)
class CountValue:
    """kappa(k) = slope * log k + curvature * (log k)^2 for k >= 1 clients served, and ``none_served`` for none."""

    none_served: float
    slope: float
    curvature: float

    def of(self, expected: Any, none: Any) -> FloatArray:
        """Return kappa for the number of clients expected if any are served; ``none`` is the chance that none is."""
        log_count = log(np.maximum(expected, 1.0))
        # In this order: the same bits as when the agents that come with flmarket were trained.
        some = (1.0 - none) * (self.slope + self.curvature * log_count) * log_count
        value: FloatArray = some + none * self.none_served
        return value


def price_levels(
    observation: Observation,
    rivals: FloatArray,  # [R, C], see ``market_model.ActiveRivals.bids``
    *,
    far: bool = False,  # whether to look at much higher prices where cores are few
) -> FloatArray:
    """Return [C, L] prices worth considering for each client, from its bid upwards, money with six decimals.

    These are the bid itself, prices just above each of the highest rival bids, and a little beyond the highest. With
    fewer than K rivals left, no offer can be outbid, and the bid is the only level. Where the rivals' bids are not
    public, the same stands for each of them, and one level just above is enough.
    """
    bids = observation.own_bids
    if len(rivals) < observation.cores:
        return bids[:, None]
    if not observation.bids_public:
        rivals = rivals[:1]
    just_above = rivals[: max(RIVAL_LEVELS, observation.cores)] + 1.0 / MICRO
    few = observation.clients * observation.cores <= FEW_CORES * len(observation.services)
    overbids = (*OVERBIDS, *FAR) if far and few else OVERBIDS
    levels = [bids, *just_above[::-1], *(np.maximum(rivals[0], bids) * factor for factor in overbids)]
    return np.asarray(to_micro(np.maximum(np.stack(levels, axis=1), bids[:, None])) / MICRO)


def plan(
    q: FloatArray,  # [C] what each client adds to the mean quality of the set
    kappa: CountValue,  # what the number of served clients is worth
    prices: FloatArray,  # [C, L] levels considered for each client, money with six decimals
    chance: FloatArray,  # [C, L] probability that an offer at each level is served
    budget: float,  # B_m, money
    *,
    available: BoolArray | None = None,  # [C] who can be selected; all if not given
    # [C] the order in which clients of equal worth are considered; by their number if not given
    turns: IntArray | None = None,
) -> Offer:
    """Return the offers that promise the most within the budget (eq. 4); at least one, if any client is affordable."""
    exact, left = to_micro(prices), to_micro(budget)
    if available is not None:
        exact = np.where(available[:, None], exact, left + 1)  # never fits
    if left < exact.min():
        return Offer.none()
    # A level beyond the budget is replaced by the bid: a client is never lost to a price above what it asked for.
    beyond = exact > left
    exact = np.where(beyond, exact[:, :1], exact)
    prices, chance = np.where(beyond, prices[:, :1], prices), np.where(beyond, chance[:, :1], chance)
    worth = _worth(q, prices, chance)  # [orders, C, L]
    level = worth.argmax(axis=2)
    best_worth = np.take_along_axis(worth, level[..., None], axis=2)[..., 0]
    turns = np.arange(len(q)) if turns is None else turns
    order = turns[np.argsort(-best_worth[:, turns], axis=1, kind="stable")]
    level = np.take_along_axis(level, order, axis=1)
    taken = _fill(exact[order, level], left)
    w = np.where(taken, chance[order, level], 0.0)
    served = np.cumsum(w, axis=1)
    none = np.cumprod(1.0 - w, axis=1)
    average = np.cumsum(w * q[order], axis=1) / np.maximum(served, 1e-9)
    value = (1.0 - none) * average + kappa.of(served / np.maximum(1.0 - none, 1e-9), none)
    # Of equal values argmax takes the first: the shortest beginning of the order that weighs prices the least.
    value = np.where(taken, value, -np.inf)
    best, length = np.unravel_index(int(np.argmax(value)), value.shape)
    chosen = np.flatnonzero(taken[best, : length + 1])
    clients = order[best][chosen]
    return Offer(clients, prices[clients, level[best][chosen]])


def _worth(q: FloatArray, prices: FloatArray, chance: FloatArray) -> FloatArray:
    """Return the worth [orders, C, L] by which the planner orders clients and picks their prices."""
    certain = bool((chance >= 1.0).all())
    anchors = np.array([quantile(q, part) for part in (ANCHORS[:1] if certain else ANCHORS)]) - 1e-3
    centred = q - mean(q)
    unit = max(math.sqrt(mean(centred * centred)), 1e-6) / max(mean(prices[:, 0]), 1e-6)
    shadow = np.array(SHADOW_PRICES) * unit
    gain = chance * (q[:, None] - anchors[:, None, None])  # [anchors, C, L]
    worth: FloatArray = gain[:, None] - shadow[None, :, None, None] * prices
    return worth.reshape(-1, *prices.shape)


def _fill(prices: IntArray, budget: int) -> BoolArray:
    """Return [orders, C] which clients each order takes when it fills the budget, skipping those that do not fit."""
    taken = np.zeros(prices.shape, dtype=np.bool_)
    left = np.full(len(prices), budget)
    cheapest = prices.min()
    for position in range(prices.shape[1]):
        price = prices[:, position]
        fits = price <= left
        taken[:, position] = fits
        left = left - price * fits
        if (left < cheapest).all():
            break
    return taken
