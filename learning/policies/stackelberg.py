"""Stackelberg: the service leads with a price per quality; clients follow, and take part where it pays their bid."""

import numpy as np

from des.money import MICRO, MicroArray, to_micro
from des.observation import Observation, Offer
from fl.arithmetic.elementary import log
from fl.arrays import FloatArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.selection import ranking
from learning.policy import NEXT_TO_NONE, Policy, PolicyContext

__all__ = ["Stackelberg"]


class Stackelberg(Policy):
    """Sets the price of a unit of quality that is best for itself, given which clients take part at which price.

    A leader announces a price, followers choose whether to take part, and the leader foresees their choice. Of Zhan,
    Li, Qu, Zeng and Guo, "A learning-based incentive mechanism for federated learning", IEEE Internet of Things Journal
    7, 2020, the abstract was read: by it, deep reinforcement learning determines the optimal strategies of a parameter
    server and of edge nodes. That is not here; the game is ours, and a client takes part with all of its data or not at
    all:

    * **Followers.** Client c takes part at price r if ``r q_c >= bid_c``; its bid is its cost as far as services know.
      q is the DQI, cut at 0.
    * **Leader.** It maximises ``weight b log(1 + Q(r) / q) - r Q(r)`` over prices r whose payments ``r Q(r)`` are
      within the budget. Q(r) is the quality that takes part; b and q are the cost and the quality half-way in the
      ranges that data can have in this market, so that bids move prices, but not what quality is worth. Only the
      prices ``bid_c / q_c`` matter, so the best of them is found exactly.

    Ours: the leader's value of quality (concave, as in this literature), the exact search, and the budget. The game
    foresees clients, not rivals: an offer may be outbid. One price for all quality buys the cheapest quality first and
    pays all but the dearest client of those more than the bid.

    Fidelity to Zhan et al. (2020): interpretation: the abstract alone was read, whose learned mechanism is not here;
    the game, its closed form and the exact search are ours, and clients take part with all of their data or not at all.
    """

    summary = "Stackelberg leader: one price per unit of data quality, the best given who takes part"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # what quality is worth in money: of the first client, about this many half-way costs; above 0
        weight: float = 10.0,
    ) -> None:
        super().__init__(context)
        self._value = in_range("weight", weight, 0, above=True) * context.data.middle_cost
        self._quality = max(context.data.middle_quality, NEXT_TO_NONE)

    def act(self, observation: Observation) -> Offer:
        """Offer the price of their quality to all clients that take part at the best price."""
        bids, quality = observation.own_bids, observation.dqi
        shuffled = ranking(observation)
        can = shuffled[(observation.available & (quality > NEXT_TO_NONE))[shuffled]]
        order = can[np.argsort(bids[can] / quality[can], kind="stable")]
        if not len(order):
            return Offer.none()
        paid = lead(bids[order], quality[order], observation.budget, self._value, self._quality)
        return Offer(order[: len(paid)], paid / MICRO)


def lead(
    bids: FloatArray,  # [n] money, in the order of bid per quality, the lowest first
    quality: FloatArray,  # [n], above 0
    budget: float,  # money
    value: float,  # what the service maximises is ``value log(1 + quality / unit) - payments``, money
    unit: float,  # above 0
) -> MicroArray:
    """Return what the clients that take part at the leader's best price are paid, micro-units."""
    least, limit, together = to_micro(bids), to_micro(budget), np.cumsum(quality)
    best, gain = least[:0], 0.0
    for k in range(1, len(bids) + 1):
        price = bids[k - 1] / quality[k - 1]
        if k < len(bids) and bids[k] / quality[k] == price:
            continue  # at this price the next one takes part, too
        # Cut above the budget, so that a price per next to no quality stays a number.
        paid = np.maximum(to_micro(np.minimum(price * quality[:k], budget + 1)), least[:k])
        total = int(paid.sum())
        if total > limit:
            break  # a higher price buys more, at a higher price
        left = value * log(1 + float(together[k - 1]) / unit) - total / MICRO
        if left > gain:
            best, gain = paid, left
    return best
