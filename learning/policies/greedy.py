"""Greedy: the most DQI for the money first."""

import numpy as np

from des.observation import Observation, Offer
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import Preference
from learning.client_selection.set_worth import offer_to_union, union_parameters
from learning.policy import PolicyContext

__all__ = ["QualityPerCost"]


class QualityPerCost(Preference):
    """Greedy: the most DQI for the money first. As a union, the client that adds the most DQI for the money is next."""

    summary = "most data quality per unit of money first"

    def __init__(
        self,
        context: PolicyContext,
        *,
        together: str = "additive",  # what clients are worth together: additive or union
    ) -> None:
        super().__init__(context)
        self._union = union_parameters(context, together)

    def act(self, observation: Observation) -> Offer:
        return super().act(observation) if self._union is None else offer_to_union(observation, self._union)

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        """Return the ratio of DQI to bid, negated; a client that asks for nothing comes first."""
        bids = observation.own_bids
        free = bids <= 0
        return (-np.where(free, np.inf, observation.dqi / np.where(free, 1.0, bids)),)
