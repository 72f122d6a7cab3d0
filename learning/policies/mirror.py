"""Mirror: paces its budget by a price of money, and shades its offers by what rivals have been found to offer."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from des.money import MICRO, to_micro
from des.observation import Feedback, Observation, Offer
from fl.arrays import AnyArray, FloatArray, IntArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.client_values import Gains
from learning.client_selection.pricing import (
    MARKUPS,
    affordable,
    best_levels,
    in_money,
    level_prices,
    markups,
    next_price_of_money,
    offer_best_returns,
    round_limit,
)
from learning.policy import Policy, PolicyContext

__all__ = ["Mirror"]

BELIEF: Final = 1 - 0.2 / (1 + 10 * MARKUPS)
"""Prior chance that a rival's offer is below each level: four in five at the bid."""

OFFERS: Final = 4.0  # how many offers at each level the prior counts for

MEMORY: Final = 0.95  # what an offer still counts a round later, because rivals learn as well


class Mirror(Policy):
    """Adaptive pacing for first prices, by dual mirror descent.

    A budget over many auctions prices money: a service that knew that price ``mu`` would make in each auction the offer
    with the highest ``value * P(win) - mu * price``. It is learned by mirror descent on the dual, here with the entropy
    as mirror map, along what was wanted beyond the budget's share of the round, or short of it:

        mu <- mu * exp(rate * clip(wanted / share - 1, -1, 1))

    Sources: Balseiro, Lu and Mirrokni, "The best of many worlds: dual mirror descent for online allocation problems",
    Operations Research 71, 2023; Balseiro and Gur, "Learning in repeated auctions with budgets: regret minimization and
    equilibrium", Management Science 65, 2019; for first prices: Gaitonde, Li, Light, Lucier and Slivkins, "Budget
    pacing in repeated auctions: regret and efficiency without convergence", ITCS 2023.

    In a first-price auction an offer is shaded: lower than the value, by how likely lower offers win. A service only
    learns whether its own offers won, so each offer says whether the rivals' highest was above or below it. The maximum
    likelihood estimate of a distribution seen in this way is the isotonic regression of the shares of wins (Ayer,
    Brunk, Ewing, Reid and Silverman, "An empirical distribution function for sampling with incomplete information",
    Annals of Mathematical Statistics 26, 1955). It is kept over the markups of
    ``learning.client_selection.pricing``, as a part of the bid, with a prior, and forgets.

    What is adapted, and ours:

    * The sources charge what is paid. Offers are binding here, so money in a refused offer is lost for the round too,
      and ``mu`` charges every offer. With a budget that lapses, the share of a round is all of it: what is paced is
      then not the run, but which clients and markups are worth a round's money, at the price that earlier rounds found.
      With a budget for the whole run it is ``learning.client_selection.pricing``'s.
    * Values are those of ``learning.client_selection.client_values``, in money: a client of mean value is worth the
      mean bid. They only matter relative to ``mu``.
    * Wanted is who is worth more than ``mu`` for its price. The best worth per price is taken first; a budget that
      lapses is then filled with the others in that order.

    ``pacing`` also cites Balseiro and Gur, but is something else: its multiplier is one markup on all bids, which rises
    with the share of refusals, in a fixed order of clients. Here refusals teach a distribution, and the multiplier
    prices money: the higher it is, the lower are the offers.

    Fidelity to Ayer et al. (1955): checked:
    tests/learning/policies/test_learned_rivals.py::test_isotonic_shares_by_hand,
    tests/learning/policies/test_sources.py::test_shares_of_wins_are_those_of_ayer_s_formula.

    Fidelity to Balseiro, Lu and Mirrokni (2023), step of the dual: checked:
    tests/learning/policies/test_sources.py::test_the_price_of_money_is_a_step_of_mirror_descent_on_the_dual.

    Fidelity to Balseiro, Lu and Mirrokni (2023), where more than twice the share is wanted: off by a factor of 1.35
    in the price of money, where five times the share is wanted at a rate of 0.1, as steps are cut:
    tests/learning/policies/test_sources.py::test_a_step_of_the_price_of_money_is_cut.

    Fidelity to Balseiro, Lu and Mirrokni (2023): interpretation: the price of money charges every offer, refused ones
    too, and values are estimates.
    """

    summary = "first-price pacing: price of money by dual mirror descent, offers shaded by a learned distribution"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        steepness: float = 2.0,  # log value of one standard deviation of the bids; in [0, 10]
        trust: float = 2.0,  # weight of DQI relative to bids where both agree; in [0, 10]
        prior: float = 10.0,  # how firmly that is held against the own learning curve, in rounds; in [0.01, 1e9]
        rate: float = 0.1,  # step of the price of money; in [0, 10], 0 keeps it
        # how much more earlier rounds get of a budget for the whole run; in [0, 10], 0 spreads it evenly
        haste: float = 3.0,
    ) -> None:
        super().__init__(context)
        self._gains = Gains(steepness=steepness, trust=trust, prior=prior)
        self._rate = in_range("rate", rate, 0, 10)
        self._haste = in_range("haste", haste, 0, 10)
        self.money = 1.0
        self._offers, self._wins = np.zeros(len(MARKUPS)), np.zeros(len(MARKUPS))

    def act(self, observation: Observation) -> Offer:
        """Offer the clients that are worth the most beyond their price at the present price of money."""
        prices, left, most = self._plan(observation)
        return offer_best_returns(observation, prices, prices, left, most)

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Move the price of money along the deviation from the budget, and count wins and losses by markup."""
        prices, left, most = self._plan(observation)
        wanted = float(to_micro(prices[left > 0]).sum()) / MICRO
        self.money = next_price_of_money(self.money, self._rate, wanted, most)
        self._gains.learn(observation, offer, feedback)
        at = np.abs(markups(observation, offer)[:, None] - MARKUPS).argmin(axis=1)
        levels = len(MARKUPS)
        self._offers = MEMORY * self._offers + np.bincount(at, minlength=levels)
        self._wins = MEMORY * self._wins + np.bincount(at[feedback.won], minlength=levels)

    def state(self) -> dict[str, FloatArray]:
        return {
            **self._gains.state(),
            "money": np.array([self.money]),
            "offers": self._offers,
            "wins": self._wins,
        }

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._gains.restore(state)
        self.money = float(state["money"][0])
        self._offers, self._wins = np.array(state["offers"]), np.array(state["wins"])

    def chances(self) -> FloatArray:
        """Return the chance that an offer at each markup is accepted, [L], ascending."""
        return isotonic(self._wins + OFFERS * BELIEF, self._offers + OFFERS)

    def _plan(self, seen: Observation) -> tuple[FloatArray, FloatArray, float]:
        """Return each client's price [C] and what it leaves [C], -inf if nothing is possible, and the limit; money."""
        most = round_limit(seen, self._haste)
        prices = level_prices(seen)
        worth = in_money(seen, self._gains.values(seen))[:, None] * self.chances()
        possible = affordable(seen, prices, most)
        level, left = best_levels(np.where(possible, worth, -np.inf), prices / MICRO, self.money)
        return prices[np.arange(len(level)), level] / MICRO, left, most / MICRO


def isotonic(wins: FloatArray, offers: FloatArray) -> FloatArray:
    """Return the ascending shares [L] next to ``wins / offers``, weighted by ``offers``: pool adjacent violators."""
    pools: list[tuple[float, float, int]] = []
    for won, count in zip(wins.tolist(), offers.tolist(), strict=True):
        pool = (won, count, 1)
        while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2] + pool[2])
        pools.append(pool)
    shares: IntArray | FloatArray = np.repeat(
        [won / count for won, count, _ in pools], [levels for _, _, levels in pools]
    )
    return np.asarray(shares, dtype=np.float64)
