"""Re-solving: every round solves again for the best offers, with learned values, learned chances and the money left."""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from des.money import MICRO, MicroArray, to_micro
from des.observation import Feedback, Observation, Offer
from fl.arithmetic.elementary import sigmoid
from fl.arithmetic.ordered_sums import column_sums, product
from fl.arrays import AnyArray, FloatArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.client_values import Gains
from learning.client_selection.knapsack import best_set
from learning.client_selection.pricing import affordable, best_levels, level_prices, level_rows, offer_rows, round_limit
from learning.policy import Policy, PolicyContext

__all__ = ["Resolving"]

CHANCE: Final = np.array([2.0, 4.0, 0.0, 0.0])
"""Prior weights of the log odds of being served: 1, markup, and the client's bid and DQI, standardised. An offer of the
bid is served seven times in eight; a quarter more makes that nineteen in twenty."""

HALVINGS: Final = 40  # steps of the bisection for the price of money


class Resolving(Policy):
    """The best set of offers for the money that is left, at prices weighed by the chance that they are accepted.

    In each round:

    * Values are those of ``learning.client_selection.client_values``: a prior from bids and DQI, corrected by the
      service's own learning curve.
    * The chance that an offer is accepted is logistic in the markup and in the client's standardised bid and DQI, which
      say whom rivals want; fitted online to the offers that were accepted and refused, by gradient steps.
    * The linear relaxation over all clients and prices has one dual variable, the price of money; it is found by
      bisection. Each client is considered at the price with the highest ``value * chance - price of money * price``,
      and the set is the exact 0/1 knapsack at these prices (the relaxation's choice of a multiple-choice knapsack:
      Sinha and Zoltners, "The multiple-choice knapsack problem", Operations Research 27, 1979).
    * Where the service has a budget for the whole run, what is left of it is spread over the rounds left
      (``learning.client_selection.pricing``), by what is expected to be paid: refused offers cost nothing.
      Solving the relaxation of the remaining run again in every round loses little on knowing the future: Jasin and
      Kumar, "A re-solving heuristic with bounded revenue loss for network revenue management with customer choice",
      Mathematics of Operations Research 37, 2012; Balseiro, Besbes and Pizarro, "Survey of dynamic resource-constrained
      reward collection problems: unified model and analysis", Operations Research 72, 2024. Their guarantees assume
      known distributions and additive values, which a market of learning rivals does not have. A budget that lapses
      leaves nothing to spread.

    Fidelity to Jasin and Kumar (2012), fluid program and its dual: checked:
    tests/learning/policies/test_sources.py::test_the_price_of_money_solves_the_dual_of_the_fluid_program,
    tests/learning/policies/test_sources.py::test_what_is_left_of_the_money_is_spread_evenly_over_the_rounds_left.

    Fidelity to Jasin and Kumar (2012); Balseiro, Besbes and Pizarro (2024): interpretation: values and chances are
    estimates and not known distributions, and only a budget for the whole run is spread.
    """

    summary = "re-solves a knapsack each round: learned values, learned chances to be served, the money left"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        steepness: float = 2.0,  # log value of one standard deviation of the bids; in [0, 10]
        trust: float = 2.0,  # weight of DQI relative to bids where both agree; in [0, 10]
        prior: float = 10.0,  # how firmly that is held against the own learning curve, in rounds; in [0.01, 1e9]
        rate: float = 0.3,  # step of what is learned about chances; in [0, 10], 0 keeps the prior
        # how much more earlier rounds get of a budget for the whole run; in [0, 10], 0 spreads it evenly
        haste: float = 1.0,
    ) -> None:
        super().__init__(context)
        self._gains = Gains(steepness=steepness, trust=trust, prior=prior)
        self._rate = in_range("rate", rate, 0, 10)
        self._haste = in_range("haste", haste, 0, 10)
        self.weights = CHANCE.copy()
        self._offered = self._paid = 1.0  # money, starting as if all of one unit had been paid

    def act(self, observation: Observation) -> Offer:
        most = round_limit(observation, self._haste, self._offered, self._paid)
        prices = level_prices(observation)
        chances = sigmoid(product(level_rows(observation), self.weights[:, None])).reshape(prices.shape)
        worth = self._gains.values(observation)[:, None] * chances * affordable(observation, prices, most)
        level, _ = best_levels(worth, prices, price_of_money(worth, prices, most))
        at = np.arange(len(level)), level
        chosen = best_set(observation, prices[at], worth[at], most)
        chosen = chosen[np.argsort(-worth[at][chosen], kind="stable")]
        return Offer(chosen, prices[at][chosen] / MICRO)

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        self._gains.learn(observation, offer, feedback)
        # what is set aside for clients at work counts as paid until they have lost it
        self._paid -= math.fsum([it.promised - it.paid for it in feedback.completed])
        if not len(offer.clients):
            return
        rows = offer_rows(observation, offer)
        missed = feedback.won - sigmoid(product(rows, self.weights[:, None])[:, 0])
        self.weights = self.weights + self._rate * column_sums(rows * missed[:, None]) / len(rows)
        self.weights[1] = max(self.weights[1], 0.0)  # no client serves less for more
        self._offered += float(to_micro(offer.payments).sum()) / MICRO
        paid = feedback.paid if feedback.promised is None else feedback.paid + feedback.promised
        self._paid += float(to_micro(paid).sum()) / MICRO

    def state(self) -> dict[str, FloatArray]:
        money = np.array([self._offered, self._paid])
        return {**self._gains.state(), "weights": self.weights, "money": money}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._gains.restore(state)
        self.weights = np.array(state["weights"])
        self._offered, self._paid = state["money"].tolist()


def price_of_money(
    worth: FloatArray,  # [C, L] expected value of each client at each price, at least 0
    prices: MicroArray,  # [C, L] micro-units
    limit: int,  # what they may add up to, micro-units
) -> float:
    """Return the dual variable of the relaxation: the least price of money at which what is wanted is affordable."""
    low, high = 0.0, float((worth / np.maximum(prices, 1)).max())
    if _wanted(worth, prices, low) <= limit:
        return low
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _wanted(worth, prices, middle) <= limit:
            high = middle
        else:
            low = middle
    return high


def _wanted(worth: FloatArray, prices: MicroArray, money: float) -> int:
    """Return what all clients cost that are worth more than their price, micro-units."""
    level, left = best_levels(worth, prices, money)
    return int(prices[np.arange(len(level)), level][left > 0].sum())
