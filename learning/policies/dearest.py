"""Dearest: offers the clients that ask for the most exactly what they ask; a baseline that learns nothing."""

from des.observation import Observation, Offer
from flmarket.core.plugin_options import whole
from learning.client_selection.selection import fill_budget, ranking
from learning.policy import Policy, PolicyContext

__all__ = ["Dearest"]


class Dearest(Policy):
    """Offers the k dearest clients that it can pay their bids.

    Where bids rise with data and fall with EMD, as in the paper's market, public prices alone give the order of
    ``d-first``, which is privileged. ``pacing`` has the same order, and pays more where offers are refused; what it
    gains over this policy is what its markup is worth. Ours: what a skeptical reader would try first.
    """

    summary = "dearest clients first, at their bids"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # the most clients that it makes an offer to in a round, at least 1; without it, as many as the budget pays
        k: int | None = None,
    ) -> None:
        super().__init__(context)
        self._most = None if k is None else whole("k", k, 1)

    def act(self, observation: Observation) -> Offer:
        """Offer the dearest clients their bids; those that no longer fit into the budget are skipped."""
        bids = observation.own_bids
        offer = fill_budget(ranking(observation, -bids), bids, observation.offer_limit, available=observation.available)
        return Offer(offer.clients[: self._most], offer.payments[: self._most])
