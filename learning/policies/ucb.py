"""A budgeted combinatorial bandit: learns what kinds of client are worth from the progress that they bring."""

from collections.abc import Mapping

import numpy as np

from des.money import to_micro
from des.observation import Feedback, Observation, Offer
from fl.arithmetic.ordered_sums import column_sums, inverse, product, standardised
from fl.arrays import FloatArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.client_values import log_error
from learning.client_selection.knapsack import best_set
from learning.policy import Policy, PolicyContext

__all__ = ["BudgetedUCB"]

RIDGE = 1.0  # weight of the prior that no feature matters, counted in rounds

LEAST_WORTH = 1e-9
"""Worth of a client that looks harmful: unspent money lapses, so that even such a client is better than none."""


class BudgetedUCB(Policy):
    """Upper confidence bounds on clients' worth, and the best set of clients for the budget.

    A client's data is new in every round, so there is nothing to learn about its index. Arms are features of what it
    shows: ``x = [1, DQI, bid, bid ** 2]``, with DQI and bid standardised over the round's clients. A round's progress,
    the fall of ``log(1 - accuracy)``, is taken to be linear in the sum of ``x`` over the clients that served. The
    estimate is a ridge regression that discounts old rounds, because progress slows down during training. The budget is
    spent on the set with the largest sum of upper confidence bounds, an exact 0/1 knapsack at the bids.

    Sources: Qin, Chen and Zhu, "Contextual combinatorial bandit and its application on diversified online
    recommendation" (C2UCB), SDM 2014; Russac, Vernade and Cappé, "Weighted linear bandits for non-stationary
    environments" (D-LinUCB), NeurIPS 2019; Tran-Thanh et al., "Knapsack based optimal policies for budget-limited
    multi-armed bandits", AAAI 2012. Unlike in C2UCB, the feedback is only the sum (full bandit), because only the whole
    set's accuracy is observed.

    Fidelity to Russac, Vernade and Cappé (2019), discounted bounds: checked:
    tests/learning/policies/test_rivals.py::test_the_bandit_s_bounds_by_hand,
    tests/learning/policies/test_sources.py::test_the_discounted_bounds_of_two_rounds_by_hand.

    Fidelity to Qin, Chen and Zhu (2014); Russac, Vernade and Cappé (2019); Tran-Thanh et al. (2012): interpretation:
    the three are combined, and the feedback is one number for the whole set.
    """

    summary = "budgeted combinatorial UCB bandit over DQI and bid, old rounds discounted"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # width of the confidence bounds, at least 0; 1 takes a round's noise to be as large as its progress
        exploration: float = 0.1,
        discount: float = 0.95,  # what a round still counts in the next one, in (0, 1]
    ) -> None:
        super().__init__(context)
        self._exploration = in_range("exploration", exploration, 0)
        self._discount = in_range("discount", discount, 0, 1, above=True)
        self._gram = np.zeros((4, 4))
        self._gram_squared = np.zeros((4, 4))  # with squared weights, for the noise in the bounds (Russac et al.)
        self._moment = np.zeros(4)
        self._squares = self._weights = 0.0  # discounted sums, for the size of a round's progress

    def act(self, observation: Observation) -> Offer:
        """Offer their bids to the affordable set of clients with the largest sum of upper confidence bounds."""
        bounds = self._bounds(features(observation))
        bids = observation.own_bids
        worth = np.maximum(bounds, LEAST_WORTH) * observation.available
        chosen = best_set(observation, to_micro(bids), worth, to_micro(observation.budget))
        return Offer(chosen, bids[chosen])

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Add the round to the regression of progress on the sum of the served clients' features."""
        total = column_sums(features(observation)[offer.clients[feedback.served]])
        outer = np.outer(total, total)
        self._gram = self._discount * self._gram + outer
        self._gram_squared = self._discount**2 * self._gram_squared + outer
        progress = log_error(observation.accuracy) - log_error(feedback.accuracy)
        self._moment = self._discount * self._moment + progress * total
        self._squares = self._discount * self._squares + progress**2
        self._weights = self._discount * self._weights + 1

    def state(self) -> dict[str, FloatArray]:
        return {
            "gram": self._gram,
            "gram_squared": self._gram_squared,
            "moment": self._moment,
            "sums": np.array([self._squares, self._weights]),
        }

    def restore(self, state: Mapping[str, FloatArray]) -> None:
        self._gram, self._gram_squared = np.array(state["gram"]), np.array(state["gram_squared"])
        self._moment = np.array(state["moment"])
        self._squares, self._weights = state["sums"].tolist()

    def _bounds(self, x: FloatArray) -> FloatArray:
        """Return the upper confidence bound [C] of each client's worth, for features [C, 4]."""
        covariance = inverse(self._gram + RIDGE * np.eye(4))
        variance = product(product(covariance, self._gram_squared + RIDGE * np.eye(4)), covariance)
        terms = product(x, variance) * x
        width = np.sqrt(product(terms, np.ones((4, 1)))[:, 0])
        noise = np.sqrt(self._squares / self._weights) if self._weights else 1.0
        estimate = product(x, product(covariance, self._moment[:, None]))[:, 0]
        upper: FloatArray = estimate + self._exploration * noise * width
        return upper


def features(observation: Observation) -> FloatArray:
    """Return what the bandit knows of each client, [C, 4]: 1, and DQI, bid and its square, standardised."""
    quality, bid = standardised(observation.dqi), standardised(observation.own_bids)
    return np.stack([np.ones_like(bid), quality, bid, bid**2], axis=1)
