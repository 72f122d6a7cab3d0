"""Outbid: HQFA's clients, at a price just above what rivals would pay if they paid the bids; it learns nothing."""

import numpy as np

from des.money import MICRO, MicroArray, to_micro
from des.observation import Observation, Offer
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import fill_budget, ranking
from learning.policy import Policy

__all__ = ["OutbidBids"]


class OutbidBids(Policy):
    """Wants the highest DQI first, and pays one micro-unit more than the rivals' bids that it has to beat.

    In the paper's market, what a client asks of every service is public; what services offer is not. A client serves
    the K services that offer it the most, and no service can offer less than the client asks of it. So an offer just
    above the K-th highest of what the client asks of the rivals wins a core against rivals that pay the bids, whichever
    clients they want; its own bid is enough where that is higher, or where there are fewer than K rivals. With one core
    this beats the highest rival's bid. Against rivals that pay more than the bids it wins nothing more than HQFA does,
    at a higher price, and services that all play it outbid each other's bids, but not each other. Where bids are not
    public, it does not know what to beat, and pays the bids, as HQFA does.

    Ours: what a skeptical reader would try first where offers meet rivals' offers.
    """

    summary = "highest data quality first, at just above what the client asks of the rivals, where that is public"

    def act(self, observation: Observation) -> Offer:
        """Offer the best clients the price that beats the rivals' bids, as far as the budget goes."""
        order = ranking(observation, -observation.dqi)
        return fill_budget(order, prices(observation), observation.budget, available=observation.available)


def prices(observation: Observation) -> FloatArray:
    """Return what beats all but K - 1 rivals at each client if they pay the bids, [C], money; at least the own bid.

    The own bid where the rivals' are not public.
    """
    if not observation.bids_public:
        return observation.own_bids
    bids = to_micro(observation.bids)
    own = observation.services.index(observation.service)
    [beats] = to_beat(bids[None], np.array([own]), np.atleast_1d(observation.capacity))
    return np.asarray(np.maximum(bids[own], beats) / MICRO)


def to_beat(
    bids: MicroArray,  # [n, M, C] what each client asks of each service, micro-units
    seats: IntArray,  # [n] the service whose rivals the others are
    cores: IntArray,  # [n] K, or [n, C] what each client has
) -> MicroArray:
    """Return what beats all but K - 1 rivals at each client of n markets if they pay the bids, [n, C], micro-units.

    0 where there are fewer than K rivals. A service that has left asks for no client; its bids are zero.
    """
    markets, each = np.arange(len(bids)), cores.reshape(len(bids), -1)
    rivals = bids.copy()
    rivals[markets, seats] = 0
    ranked = np.sort(rivals, axis=1)[:, ::-1]
    highest = ranked[markets[:, None], np.minimum(each, ranked.shape[1]) - 1, np.arange(ranked.shape[2])]
    return np.where((highest > 0) & (each <= ranked.shape[1]), highest + 1, 0)
