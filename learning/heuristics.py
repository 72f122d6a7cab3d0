"""The paper's benchmarks (LCFA, HQFA, Random) and two simple rivals. All pay exactly the bid.

Each ranks the clients; the budget is then filled in that order, skipping clients that do not fit until none does. Equal
clients are taken in a random order (``learning.selection.ranked``).
"""

from abc import abstractmethod

import numpy as np

from des.records import Observation, Offer
from fl.arrays import FloatArray, IntArray
from learning.policy import Policy
from learning.selection import fill_budget, ranked


class Preference(Policy):
    """A policy that ranks clients and pays each its bid."""

    def act(self, observation: Observation) -> Offer:
        order = ranked(observation, *self.keys(observation))
        return fill_budget(order, observation.own_bids, observation.budget, available=observation.available)

    @abstractmethod
    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        """Return sort keys [C], the most important first; smaller is better. Without keys, the order is random."""


class RandomPolicy(Preference):
    """Random: clients in a random order under constraints (2)-(5)."""

    summary = "clients in random order (the paper's Random)"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        return ()


class LowCostFirst(Preference):
    """LCFA: the lowest bids first, so as many clients as possible."""

    summary = "lowest bids first, as many clients as possible (the paper's LCFA)"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        return (observation.own_bids,)


class HighQualityFirst(Preference):
    """HQFA: the highest DQI first."""

    summary = "highest data quality indicator first (the paper's HQFA)"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        return (-observation.dqi,)


class QualityPerCost(Preference):
    """Greedy: the most DQI for the money first."""

    summary = "most data quality per unit of money first"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        """Return the ratio of DQI to bid, negated; a client that asks for nothing comes first."""
        bids = observation.own_bids
        free = bids <= 0
        return (-np.where(free, np.inf, observation.dqi / np.where(free, 1.0, bids)),)


class DataFirst(Preference):
    """D-first: the largest data set first, the lowest EMD among equals. Sees what the paper hides, though not its bids.

    In ``paper`` public bids tell as much: ``learning.dearest`` has the same order.
    """

    summary = "most data first, then lowest EMD; privileged: sees data sizes and EMDs"
    privileged = True

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        hidden = observation.privileged
        assert hidden is not None  # noqa: S101 - the market gives it to every policy that declares it
        return (-hidden.data_size, hidden.emd)
