"""Policies that rank clients, fill the budget in that order and pay each exactly its bid.

Clients that do not fit are skipped until none does. Equal clients are taken in a random order
(``learning.client_selection.selection.ranked``).
"""

from abc import abstractmethod

from des.observation import Observation, Offer
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import fill_budget, ranked
from learning.policy import Policy


class Preference(Policy):
    """A policy that ranks clients and pays each its bid."""

    def act(self, observation: Observation) -> Offer:
        order = ranked(observation, *self.keys(observation))
        return fill_budget(order, observation.own_bids, observation.budget, available=observation.available)

    @abstractmethod
    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        """Return sort keys [C], the most important first; smaller is better. Without keys, the order is random."""
