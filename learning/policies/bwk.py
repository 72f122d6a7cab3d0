"""BwK: a contextual bandit with knapsacks, optimistic about values, chances and costs alike."""

from collections.abc import Mapping
from math import fsum
from typing import Final

import numpy as np

from des.money import MICRO
from des.observation import Feedback, Observation, Offer
from fl.arithmetic.ordered_sums import column_sums, inverse, product
from fl.arrays import AnyArray, FloatArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.client_values import Gains
from learning.client_selection.pricing import (
    affordable,
    best_levels,
    in_money,
    level_prices,
    level_rows,
    next_price_of_money,
    offer_best_returns,
    offer_rows,
    round_limit,
)
from learning.policy import Policy, PolicyContext

__all__ = ["ContextualKnapsack"]

CHANCE: Final = np.array([0.85, 0.3, 0.0, 0.0])
"""Prior weights of the chance to be served: 1, markup, and the client's bid and DQI, standardised."""


class ContextualKnapsack(Policy):
    """Linear upper confidence bounds under a budget, with a price of money.

    An arm is a client at a price (``learning.client_selection.pricing``), and its context is what is known of
    both: DQI, bid, and the price relative to the bid. Two things are learned: whether an offer is accepted, linear in
    the context, by ridge regression; and what the client is worth (``learning.client_selection.client_values``), where
    the feedback is one number for all that served. The index of an arm is optimistic about both what it brings and what
    it takes:

        value+ * chance+ - money * price * chance-

    with confidence bounds above (+) and below (-): a refused offer costs nothing in the run, so the lower bound of the
    cost has the lower chance. Clients are taken by their best arm's index for its cost, as long as that is positive; a
    budget that lapses is then filled with the others. The price of money moves, by multiplicative weights, with what
    the arms with a positive index are expected to take beyond the round's share of the budget, or short of it.

    Sources: Agrawal and Devanur, "Linear contextual bandits with knapsacks", NeurIPS 2016 (index, optimism over costs,
    online learning of the dual); Badanidiyuru, Kleinberg and Slivkins, "Bandits with knapsacks", JACM 65, 2018;
    Badanidiyuru, Langford and Slivkins, "Resourceful contextual bandits", COLT 2014. There, one arm is pulled a round,
    and the budget is for all rounds. Here a round takes a set, budgets lapse unless a scenario has one for the whole
    run, and the worth of single arms is never observed; the regret bounds do not carry over. ``ucb`` is another bandit:
    it fits each round's progress, pays bids, and knows neither refusals nor a price of money.

    Fidelity to Agrawal and Devanur (2016), confidence bounds and index: checked:
    tests/learning/policies/test_sources.py::test_bwk_s_bounds_and_index_by_hand.

    Fidelity to Agrawal and Devanur (2016): interpretation: a round takes a set of arms, budgets lapse unless they are
    for the run, and progress stands for the sum of the arms' rewards.
    """

    summary = "contextual bandit with knapsacks: optimistic values and costs over DQI, bid and relative price"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        steepness: float = 2.0,  # log value of one standard deviation of the bids; in [0, 10]
        trust: float = 2.0,  # weight of DQI relative to bids where both agree; in [0, 10]
        prior: float = 10.0,  # how firmly that is held against the own learning curve, in rounds; in [0.01, 1e9]
        exploration: float = 0.1,  # width of all confidence bounds, in standard deviations; in [0, 10]
        rate: float = 0.1,  # step of the price of money; in [0, 10], 0 keeps it
        # how much more earlier rounds get of a budget for the whole run; in [0, 10], 0 spreads it evenly
        haste: float = 2.0,
    ) -> None:
        super().__init__(context)
        self._gains = Gains(steepness=steepness, trust=trust, prior=prior)
        self._exploration = in_range("exploration", exploration, 0, 10)
        self._rate, self._haste = in_range("rate", rate, 0, 10), in_range("haste", haste, 0, 10)
        self.money = 1.0
        self._gram, self._moment = np.eye(len(CHANCE)), CHANCE.copy()

    def act(self, observation: Observation) -> Offer:
        prices, index, cost, most = self._plan(observation)
        return offer_best_returns(observation, prices, cost, index, most)

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        _, index, cost, most = self._plan(observation)
        self.money = next_price_of_money(self.money, self._rate, fsum(cost[index > 0].tolist()), most)
        self._gains.learn(observation, offer, feedback)
        if len(offer.clients):
            rows = offer_rows(observation, offer)
            self._gram = self._gram + product(np.ascontiguousarray(rows.T), rows)
            self._moment = self._moment + column_sums(rows * feedback.won[:, None])

    def state(self) -> dict[str, FloatArray]:
        chances = {"chance_gram": self._gram, "chance_moment": self._moment, "money": np.array([self.money])}
        return {**self._gains.state(), **chances}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._gains.restore(state)
        self._gram, self._moment = np.array(state["chance_gram"]), np.array(state["chance_moment"])
        self.money = float(state["money"][0])

    def chances(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return confidence bounds below and above the chance that offers are accepted, [n], for features [n, 4]."""
        covariance = inverse(self._gram)
        estimate = product(rows, product(covariance, self._moment[:, None]))[:, 0]
        spread = np.sqrt(product(product(rows, covariance) * rows, np.ones((rows.shape[1], 1)))[:, 0])
        low, high = estimate - self._exploration * spread, estimate + self._exploration * spread
        return np.minimum(np.maximum(low, 0.0), 1.0), np.minimum(np.maximum(high, 0.0), 1.0)

    def _plan(self, seen: Observation) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return each client's price, index (-inf if nothing is possible) and expected cost, all [C], and the limit."""
        most = round_limit(seen, self._haste)
        prices = level_prices(seen)
        low, high = (bound.reshape(prices.shape) for bound in self.chances(level_rows(seen)))
        worth = in_money(seen, self._gains.values(seen, self._exploration))[:, None] * high
        cost = prices / MICRO * low
        possible = affordable(seen, prices, most)
        level, index = best_levels(np.where(possible, worth, -np.inf), cost, self.money)
        at = np.arange(len(level)), level
        return prices[at] / MICRO, index, cost[at], most / MICRO
