"""Contribution: estimates online what each client brings to accuracy, picks by it, and pays a bonus by it."""

from collections.abc import Mapping

import numpy as np

from des.money import MICRO, to_micro
from des.observation import Feedback, Observation, Offer
from fl.arithmetic.ordered_sums import mean
from fl.arrays import AnyArray, FloatArray, IntArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.client_values import log_error
from learning.client_selection.selection import fill_budget, ranking
from learning.policy import Policy, PolicyContext

__all__ = ["Contribution"]


class Contribution(Policy):
    """Prefers and rewards clients by what accuracy would have lost without them, estimated from accuracy alone.

    A client's leave-one-out contribution is the value of the whole set less that of the set without it (for federated
    learning: Wang, Dang and Zhou, "Measure contribution of participants in federated learning", IEEE Big Data 2019, by
    deletion). It needs the training of a round once more for each client. A service of this market observes one number
    a round, its accuracy, so contributions are estimated:

    * A round's progress is the fall of ``log(1 - accuracy)``, and is taken to be the sum of the contributions of the
      clients that served: leaving out a client then loses its own.
    * After a round in which clients S served, each of them is credited with an equal share of what they did not
      explain: ``w_c <- w_c + rate * (progress - sum of w over S) / |S|``, the normalised least-mean-squares step
      (Widrow and Hoff, 1960; Kaczmarz). Who serves for the first time starts at the mean of the known.
    * The highest estimates are picked first, at their bids; who never served counts as the best, in random order.
    * A part ``bonus`` of the budget is kept from picking. It and what is left over are divided among the picked by
      estimate, as far as it is positive; without estimates nothing is added. The estimates decide how a client is paid
      above its bid, as in contribution-based pay.

    Ours: the estimate and the bonus. It assumes that a client is worth today what it was worth before. Where clients
    draw new data in every round, as in the paper's market, there is nothing to learn about a client, and this can do no
    better than a random choice. Clients that always serve together are credited alike: accuracy does not tell them
    apart.

    Fidelity to Widrow and Hoff (1960): checked: tests/learning/policies/test_field.py::test_contributions_by_hand.

    Fidelity to Wang, Dang and Zhou (2019), deletion where progress adds up: checked:
    tests/learning/policies/test_sources.py::test_where_progress_adds_up_estimates_become_what_leaving_a_client_out_loses.

    Fidelity to Wang, Dang and Zhou (2019): interpretation: leave-one-out contributions are estimated from the
    accuracies alone, and progress is taken to be their sum.
    """

    summary = "highest estimated contribution to accuracy first, with a bonus in proportion to it"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        rate: float = 0.3,  # how much of a round's unexplained progress is credited, in (0, 1]
        bonus: float = 0.1,  # the part of the budget that is divided by contribution, in [0, 1)
    ) -> None:
        super().__init__(context)
        self._rate, self._bonus = in_range("rate", rate, 0, 1, above=True), in_range("bonus", bonus, 0, 1, below=True)
        self.worth = np.full(context.clients, np.nan)

    def act(self, observation: Observation) -> Offer:
        """Offer the clients with the highest contributions their bids and a bonus."""
        bids, budget = observation.own_bids, to_micro(observation.budget)
        order = ranking(observation, -np.where(np.isnan(self.worth), np.inf, self.worth))
        held = to_micro(self._bonus * observation.budget)
        chosen = fill_budget(order, bids, (budget - held) / MICRO, available=observation.available).clients
        asked = to_micro(bids[chosen])
        return Offer(chosen, (asked + self._shares(chosen, budget - int(asked.sum()))) / MICRO)

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Credit the clients that served with the progress that their estimates do not explain."""
        served = offer.clients[feedback.served]
        if not len(served):
            return
        progress = log_error(observation.accuracy) - log_error(feedback.accuracy)
        known = self.worth[~np.isnan(self.worth)]
        start = mean(known) if len(known) else 0.0
        estimate = np.where(np.isnan(self.worth[served]), start, self.worth[served])
        self.worth[served] = estimate + self._rate * (progress / len(served) - mean(estimate))

    def state(self) -> dict[str, FloatArray]:
        return {"worth": self.worth}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self.worth = np.array(state["worth"])

    def _shares(self, chosen: IntArray, left: int) -> AnyArray:
        """Return what each picked client gets of the money that is left, micro-units: in proportion to its estimate."""
        good = np.maximum(np.nan_to_num(self.worth[chosen]), 0.0)
        whole = mean(good) * len(good) if len(good) else 0.0
        if not whole > 0:
            return np.zeros(len(good), dtype=np.int64)
        # A little less than all, so that rounding up cannot exceed it.
        parts: AnyArray = np.floor(left * (good / whole) * (1 - 1e-12)).astype(np.int64)
        return parts
