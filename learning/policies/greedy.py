"""Greedy: the most DQI for the money first."""

import numpy as np

from des.observation import Observation
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import Preference

__all__ = ["QualityPerCost"]


class QualityPerCost(Preference):
    """Greedy: the most DQI for the money first."""

    summary = "most data quality per unit of money first"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        """Return the ratio of DQI to bid, negated; a client that asks for nothing comes first."""
        bids = observation.own_bids
        free = bids <= 0
        return (-np.where(free, np.inf, observation.dqi / np.where(free, 1.0, bids)),)
