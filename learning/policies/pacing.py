"""Pacing: pays above the bid only as far as refusals make it necessary."""

from collections.abc import Mapping

import numpy as np

from des.observation import Feedback, Observation, Offer
from fl.arrays import FloatArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.selection import fill_budget, ranking
from learning.policy import Policy, PolicyContext

__all__ = ["RefusalPacing"]


class RefusalPacing(Policy):
    """Wants the dearest clients first, at a markup that follows the share of refused offers.

    Adaptive pacing (Balseiro and Gur, "Learning in repeated auctions with budgets: regret minimization and
    equilibrium", Management Science 65, 2019) keeps one multiplier and moves it by how much was over- or underspent, a
    projected gradient step on the budget's shadow price. Here budgets are per round and lapse, so there is nothing to
    spread over rounds. What a service can waste is the money held by offers that are refused, because offers are
    binding. The multiplier paces those, and leaves out clients that were won and then did not deliver:

        markup <- clip(markup + rate * (refused / wanted - tolerance), 0, limit),    payment = (1 + markup) * bid

    A higher markup wins contested clients, but buys fewer of them; in rounds without refusals it sinks back to 0.

    Bids rise with a client's data and fall with its EMD, so the dearest clients have the best data: this is D-first, by
    public prices.

    Fidelity to Balseiro and Gur (2019), projected step: checked:
    tests/learning/policies/test_sources.py::test_pacing_s_multiplier_is_a_projected_step.

    Fidelity to Balseiro and Gur (2019): interpretation: the multiplier follows the share of refused offers in the place
    of what was over- or underspent.
    """

    summary = "dearest clients first, markup paced by the share of refused offers"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        rate: float = 0.2,  # how fast the markup adapts; above 0
        tolerance: float = 0.1,  # share of refused offers that is accepted, in [0, 1)
        limit: float = 1.0,  # highest markup, as a part of the bid; at least 0
    ) -> None:
        super().__init__(context)
        self._rate = in_range("rate", rate, 0, above=True)
        self._tolerance = in_range("tolerance", tolerance, 0, 1, below=True)
        self._limit = in_range("limit", limit, 0)
        self.markup = 0.0

    def act(self, observation: Observation) -> Offer:
        """Offer the dearest clients their marked-up bids until the budget is used."""
        bids = observation.own_bids
        order = ranking(observation, -bids)
        return fill_budget(order, bids * (1 + self.markup), observation.budget, available=observation.available)

    def state(self) -> dict[str, FloatArray]:
        return {"markup": np.array([self.markup])}

    def restore(self, state: Mapping[str, FloatArray]) -> None:
        self.markup = float(state["markup"][0])

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Raise the markup if more offers than tolerated were refused, otherwise lower it; keep it without offers."""
        if len(offer.clients):
            refused = 1 - float(feedback.won.mean())  # a client that left was not lost to a rival
            self.markup = min(self._limit, max(0.0, self.markup + self._rate * (refused - self._tolerance)))
