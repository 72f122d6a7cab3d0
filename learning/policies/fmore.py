"""FMore: a score auction. The service announces how it scores quality and price, and takes the best scores."""

import numpy as np

from des.mechanisms.score_auction import PAYMENTS, auction
from des.money import MICRO, to_micro
from des.observation import Observation, Offer
from des.offer_checks import MOST
from flmarket.core.plugin_options import in_range, one_of, whole
from learning.client_selection.selection import ranking
from learning.policy import Policy, PolicyContext

__all__ = ["FMore"]


class FMore(Policy):
    """Takes the clients with the highest score ``S(q, p) = s(q) - p``, as far as the budget goes.

    After Zeng, Zhang, Wang and Chu, "FMore: An incentive scheme of multi-dimensional auction for federated learning in
    MEC", ICDCS 2020. There, an aggregator announces the scoring rule, nodes bid qualities and a price, and the K
    highest scores win. With ``first-score`` a winner is paid the price that it asks. With ``second-score`` it is paid
    the price at which its score would equal the best losing one (Che, "Design competition through multidimensional
    auctions", RAND Journal of Economics 24, 1993), at least its bid; if none loses, its bid.

    What is adapted, and ours:

    * The qualities of the paper (data, bandwidth, computing power) are private here. q is the DQI, from 0 for the
      lowest to 1 for the highest that clients can have in this market.
    * The paper leaves s to the buyer, who announces it before anybody bids. Here ``s(q) = weight * q``, in units of the
      highest cost that data can have in this market: no bid moves a score but its own.
    * The number of winners is what the budget pays; the paper fixes it and has no budget. An unspent budget lapses, so
      no score is too low to win.
    * The paper's nodes choose quality and price in equilibrium. Here clients bid by the market's rules, and cannot
      choose their quality; so nothing is claimed about equilibria.
    * One buyer there, several here: an offer may be outbid.

    Fidelity to Che (1993): checked:
    tests/learning/policies/test_field.py::test_fmore_pays_second_scores_from_public_bids,
    tests/des/mechanisms/test_sources.py::test_at_second_scores_the_cost_is_a_best_response,
    tests/des/mechanisms/test_sources.py::test_che_s_equilibrium_of_first_scores_is_a_best_response.

    Fidelity to Zeng et al. (FMore, 2020), scores and first-score payments: checked:
    tests/learning/policies/test_field.py::test_fmore_takes_the_best_scores.

    Fidelity to Zeng et al. (FMore, 2020): interpretation: quality is the DQI, s is linear, the budget sets the number
    of winners, and clients do not choose their quality.
    """

    summary = "score auction after FMore: highest score of quality less price first"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # what the best DQI is worth more than the worst, in the highest cost of data; at least 0. With 0 it is LCFA
        weight: float = 1.0,
        payment: str = "first-score",  # ``first-score`` or ``second-score``
        # the most clients that it takes in a round, at least 1; without it, as many as the budget pays
        winners: int | None = None,
    ) -> None:
        super().__init__(context)
        weight, data = in_range("weight", weight, 0, 1000), context.data
        self._worst, spread = data.dqi[0], data.dqi[1] - data.dqi[0]
        self._unit = weight * data.cost[1] / spread if spread > 0 else 0.0  # what a unit of DQI is worth, money
        self._second = one_of("payment", payment, PAYMENTS) == PAYMENTS[1]
        self._winners = None if winners is None else whole("winners", winners, 1)

    def act(self, observation: Observation) -> Offer:
        bids, budget = to_micro(observation.own_bids), to_micro(observation.budget)
        shuffled = ranking(observation)
        affordable = shuffled[(observation.available & (bids <= budget))[shuffled]]
        if not len(affordable):
            return Offer.none()
        asked, better = bids[affordable], observation.dqi[affordable] - self._worst
        value = to_micro(np.clip(self._unit * better, 0, MOST / MICRO))
        best_first = np.argsort(asked - value, kind="stable")
        won, paid = auction(value[best_first], asked[best_first], budget, self._winners, second=self._second)
        return Offer(affordable[best_first[won]], paid / MICRO)
