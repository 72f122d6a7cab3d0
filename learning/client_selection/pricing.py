"""What a policy may offer: the prices between which it chooses for a client, and a round's share of its budget."""

import math
from typing import Final

import numpy as np

from des.money import MICRO, Micro, MicroArray, to_micro
from des.observation import Observation, Offer
from fl.arithmetic.elementary import exp, power
from fl.arithmetic.ordered_sums import mean, standardised
from fl.arrays import BoolArray, FloatArray, IntArray
from learning.client_selection.selection import fill_budget, ranking

MARKUPS: Final = np.array([0.0, 0.05, 0.1, 0.25, 0.5])  # what is added to the bid, in bids; ascending

CHEAPEST_MONEY, DEAREST_MONEY = 1e-3, 1e3  # the least and the highest price of money that is learned


def contexts(seen: Observation) -> FloatArray:
    """Return each client's bid and its DQI, standardised over the round's clients, [C, 2]."""
    return np.stack([standardised(seen.own_bids), standardised(seen.dqi)], axis=1)


def level_prices(seen: Observation) -> MicroArray:
    """Return the price of each client at each level, [C, L], micro-units."""
    prices: MicroArray = to_micro(seen.own_bids[:, None] * (1 + MARKUPS))
    return prices


def level_rows(seen: Observation) -> FloatArray:
    """Return what a chance to be served may depend on, [C * L, 4]: 1, the markup, and the client's ``contexts``."""
    z = contexts(seen)
    count, levels = len(z), len(MARKUPS)
    return np.column_stack([np.ones(count * levels), np.tile(MARKUPS, count), np.repeat(z, levels, axis=0)])


def offer_rows(seen: Observation, offer: Offer) -> FloatArray:
    """Return the same of each offer made, [k, 4]."""
    return np.column_stack([np.ones(len(offer.clients)), markups(seen, offer), contexts(seen)[offer.clients]])


def markups(seen: Observation, offer: Offer) -> FloatArray:
    """Return what each offer adds to the bid, [k], in bids; 0 where the bid is 0."""
    bids = seen.own_bids[offer.clients]
    asked = np.where(bids > 0, bids, 1.0)
    return np.asarray(np.where(bids > 0, offer.payments / asked - 1, 0.0))


def in_money(seen: Observation, values: FloatArray) -> FloatArray:
    """Return relative values [C] in money: a client of mean value is worth the round's mean bid."""
    worth: FloatArray = values * (mean(seen.own_bids) / mean(values))
    return worth


def best_levels(
    worth: FloatArray,  # [C, L] what is expected of each client at each level
    cost: FloatArray | MicroArray,  # [C, L] what that costs, in the units in which ``money`` is priced
    money: float,  # the price of money
) -> tuple[IntArray, FloatArray]:
    """Return each client's best level at a price of money, and what it leaves there; both [C]."""
    left: FloatArray = worth - money * cost
    level = left.argmax(axis=1)
    return level, left[np.arange(len(left)), level]


def offer_best_returns(
    seen: Observation,
    prices: FloatArray,  # [C] what each client is offered, money
    cost: FloatArray,  # [C] what is expected to be paid for it, money
    left: FloatArray,  # [C] what it leaves at the price of money; -inf where it cannot be offered
    limit: float,  # what may be offered in the round, money
) -> Offer:
    """Offer clients in the order of what they leave for each unit of what they cost, the most first.

    A budget that lapses is filled with those that leave nothing, too.
    """
    fits = np.isfinite(left) if seen.total_left is None else left > 0
    order = ranking(seen, -left / np.maximum(cost, 1 / MICRO))
    return fill_budget(order, prices, limit, available=fits)


def next_price_of_money(
    money: float,  # the price so far
    rate: float,  # the step's size
    wanted: float,  # what was wanted at that price, money
    share: float,  # what there was, money
) -> float:
    """Return the next price of money: an exponentiated step along the budget's deviation, at most 1 either way.

    Mirror descent on the dual with the entropy as its mirror map.
    """
    deviation = 1.0 if wanted > 2 * share else (wanted / share - 1 if share > 0 else 0.0)
    return min(max(money * exp(rate * deviation), CHEAPEST_MONEY), DEAREST_MONEY)


def affordable(seen: Observation, prices: MicroArray, limit: int) -> BoolArray:
    """Return which prices [C, L] can be offered: of clients that are available, within a limit in micro-units."""
    fits: BoolArray = (prices <= limit) & seen.available[:, None]
    return fits


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


def round_limit(
    seen: Observation,  # the round
    haste: float,  # see ``share_of_rounds_left``
    # so much is paid of so much that is offered; offers may go beyond the share as far as that says
    offered: float = 1.0,
    paid: float = 1.0,
) -> Micro:
    """Return what may be offered in a round at most, micro-units: its budget, or its share of one for the whole run."""
    budget, share = to_micro(seen.budget), share_of_rounds_left(seen, haste)
    return budget if share is None else min(budget, to_micro(share * offered / paid))
