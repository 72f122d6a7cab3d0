"""A privileged policy: what a service could do if it knew the clients' data and its rivals' offers."""

from collections.abc import Iterable

import numpy as np

from des.money import MICRO, MicroArray, to_micro
from des.observation import Observation, Offer
from fl.arrays import FloatArray, IntArray
from learning.client_selection.knapsack import best_set
from learning.policy import Policy

__all__ = ["CriticalPrices"]


class CriticalPrices(Policy):
    """Buys the best clients at the lowest payments that win them. Privileged: sees data, EMDs and this round's offers.

    A client is won for sure at its critical price (Myerson, "Optimal auction design", Mathematics of Operations
    Research 6, 1981; Lehmann, O'Callaghan and Shoham, "Truth revelation in approximately efficient combinatorial
    auctions", JACM 49, 2002): its bid as long as fewer than K rivals want it, otherwise one micro-unit above the K-th
    highest offer of the rivals. At these prices, the best set within the budget is an exact 0/1 knapsack over clients.

    A client's value is ``(D * (1 - EMD / 2)) ** 2``. Half the EMD (an L1 distance) is the share of images that would
    need another label for the labels to be uniform, so the base counts the images that could be part of an IID data
    set. It is squared because progress follows the data of each client more than that of all together: one client's
    steps build upon each other, several clients' are averaged. The value only approximates what training yields, and no
    value that is a sum over clients can be exact. So this is a best response to the rivals, not an upper bound.

    It is a heuristic for one round with privileged information, and no oracle of the run: it does not look ahead, and
    neither its choice nor its score bounds those of other policies. The name stays because stored results and the
    references of the frozen suite carry it.

    Services that all play it do not see each other's offers.

    Fidelity to Myerson (1981); Lehmann, O'Callaghan and Shoham (2002): interpretation: a critical price is the lowest
    price that wins, in this market.
    """

    summary = "best response by critical prices and exact knapsack; privileged: sees data, EMDs and rivals' offers"
    privileged = True
    sees_offers = True

    def act(self, observation: Observation) -> Offer:
        """Return the offers of the best affordable set, the most valuable client first."""
        hidden = observation.privileged
        assert hidden is not None  # noqa: S101 - the market gives it to every policy that declares it
        assert hidden.rival_offers is not None  # noqa: S101 - learning.play_round.decide adds them
        prices = critical_prices(to_micro(observation.own_bids), hidden.rival_offers.values(), observation.capacity)
        values: FloatArray = (hidden.data_size * (1 - hidden.emd / 2)) ** 2 * observation.available
        chosen = best_set(observation, prices, values, to_micro(observation.budget))
        chosen = chosen[np.argsort(-values[chosen], kind="stable")]
        return Offer(chosen, prices[chosen] / MICRO)


def critical_prices(
    bids: MicroArray,  # [C] the clients' bids to this service, micro-units
    offers: Iterable[Offer],  # the rivals' offers
    cores: int | IntArray,  # K, or [C] what each client has
) -> MicroArray:
    """Return the lowest payment [C] that wins each client for sure, in micro-units."""
    rivals = []
    for offer in offers:
        row = np.full(len(bids), -1, dtype=np.int64)  # below any bid: no offer
        row[offer.clients] = to_micro(offer.payments)
        rivals.append(row)
    if not (few := np.less_equal(cores, len(rivals))).any():
        return bids.copy()
    highest = np.sort(np.array(rivals), axis=0)[-np.minimum(cores, len(rivals)), np.arange(len(bids))]
    return np.maximum(bids, np.where(few, highest + 1, 0))
