"""The rules of display advertising with which papers on auction-based federated learning compare their bidders.

A client's data size stands for the chance of a click, and its DQI where services do not see data sizes.
"""

from abc import abstractmethod

import numpy as np

from des.money import MICRO, to_micro
from des.observation import Observation, Offer
from des.offer_checks import MOST
from fl.arithmetic.ordered_sums import mean
from fl.arrays import FloatArray, IntArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.selection import fill_budget, ranking
from learning.policy import Policy, PolicyContext

USUAL = 1.5
"""Where no level is given, rules bid so many half-way costs for a client of average utility."""


class Bidder(Policy):
    """Bids for each client what a rule says that it is worth, while there is money.

    Where clients come one after another it bids for the one on offer, and no more than it has left. Where all come at
    once, which is ours, it offers their bids to those that ask no more, the highest bid first, as far as the budget
    goes.
    """

    def __init__(self, context: PolicyContext) -> None:
        super().__init__(context)
        self._whose: FloatArray | IntArray | None = None  # the utilities of which the mean is known
        self._average = 0.0

    @abstractmethod
    def bids(self, observation: Observation, relative: FloatArray) -> FloatArray:
        """Return bids [k], money, for clients whose utilities [k] are given in units of the mean of all clients."""

    def act(self, observation: Observation) -> Offer:
        turn, utility = observation.turn, utility_of(observation)
        if utility is not self._whose:
            self._whose, self._average = utility, mean(np.maximum(utility, 0))
        if turn is None:
            worth = to_micro(np.clip(self.bids(observation, self._relative(utility)), 0, MOST / MICRO)) / MICRO
            wanted = observation.available & (worth >= observation.own_bids)
            return fill_budget(ranking(observation, -worth), worth, observation.offer_limit, available=wanted)
        if not observation.available[turn.client]:
            return Offer.none()
        bid = np.minimum(self.bids(observation, self._relative(utility[[turn.client]])), observation.budget)
        return Offer(np.array([turn.client]), bid) if bid[0] >= observation.own_bids[turn.client] else Offer.none()

    def _relative(self, utility: FloatArray | IntArray) -> FloatArray:
        if self._average == 0:
            return np.zeros(len(utility))
        relative: FloatArray = np.maximum(utility, 0) / self._average
        return relative


def utility_of(observation: Observation) -> FloatArray | IntArray:
    """Return what stands for the chance of a click [C]: the data size where services see it, else the DQI."""
    return observation.dqi if observation.privileged is None else observation.privileged.data_size


class Const(Bidder):
    """Bids the same for every client.

    Fidelity to Zhang, Yuan, Wang and Shen (2014), arXiv 1407.7073: checked:
    tests/learning/bidders/test_display.py::test_bids_follow_the_formulas.
    """

    summary = "display advertising: bids the same for every client"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        level: float | None = None,  # the bid, money; without it, half as much again as half-way costs
    ) -> None:
        super().__init__(context)
        self._level = _level(context, level)

    def bids(self, observation: Observation, relative: FloatArray) -> FloatArray:
        return np.full(len(relative), self._level)


class Rand(Bidder):
    """Bids a number drawn anew for every client, below a bound.

    Fidelity to Zhang, Yuan, Wang and Shen (2014), arXiv 1407.7073: checked:
    tests/learning/bidders/test_display.py::test_random_bids_are_drawn_anew_below_the_bound.
    """

    summary = "display advertising: bids a random number for every client"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        level: float | None = None,  # the bound, money; without it, three times the half-way cost
    ) -> None:
        super().__init__(context)
        self._level = _level(context, level, 2.0)

    def bids(self, observation: Observation, relative: FloatArray) -> FloatArray:
        draws: FloatArray = self._level * observation.rng().random(len(relative))
        return draws


class Mcpc(Bidder):
    """Bids what a unit of utility may cost at most, for each unit: no budget is in it.

    Fidelity to Zhang, Yuan, Wang and Shen (2014), arXiv 1407.7073: checked:
    tests/learning/bidders/test_display.py::test_bids_follow_the_formulas.
    """

    summary = "display advertising: bids a price for each unit of utility, whatever its budget"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # money for an image, or for a DQI of 1 where services see no images: what it has cost in training runs.
        # Without it, as much as makes half as much again as half-way costs for a client of average utility
        level: float | None = None,
    ) -> None:
        super().__init__(context)
        self._unit = None if level is None else in_range("level", level, 0)
        self._usual = _level(context, None) if level is None else 0.0

    def bids(self, observation: Observation, relative: FloatArray) -> FloatArray:
        money: FloatArray = relative * (self._usual if self._unit is None else self._unit * self._average)
        return money


class Lin(Bidder):
    """Bids in proportion to a client's utility.

    Fidelity to Zhang, Yuan, Wang and Shen (2014), arXiv 1407.7073: checked:
    tests/learning/bidders/test_display.py::test_bids_follow_the_formulas.
    """

    summary = "display advertising: bids in proportion to utility"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # the bid for a client of average utility, money; without it, half as much again as half-way costs
        level: float | None = None,
    ) -> None:
        super().__init__(context)
        self._level = _level(context, level)

    def bids(self, observation: Observation, relative: FloatArray) -> FloatArray:
        money: FloatArray = self._level * relative
        return money


class Ortb(Bidder):
    """Bids ``sqrt(c u / lambda + c^2) - c`` for a client of utility u, which is concave.

    This follows from a chance ``b / (c + b)`` to win at a bid b, and from the bid as the cost.

    Fidelity to Zhang, Yuan and Wang (KDD 2014): checked:
    tests/learning/bidders/test_display.py::test_the_bid_of_ortb_solves_its_problem.
    """

    summary = "display advertising: bids a concave function of utility (ORTB)"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # 1 / lambda for a utility of 1 in units of the mean, money; without it, as much as bids half as much again as
        # half-way costs for a client of average utility
        level: float | None = None,
        c: float | None = None,  # the bid that wins every second time, money; without it, that bid
    ) -> None:
        super().__init__(context)
        usual = _level(context, None) if level is None or c is None else 0.0
        self._c = usual if c is None else in_range("c", c, 0, above=True)
        if level is None:
            level = usual * (usual + 2 * self._c) / self._c if self._c else 0.0
        self._level = in_range("level", level, 0)

    def bids(self, observation: Observation, relative: FloatArray) -> FloatArray:
        money: FloatArray = np.sqrt(self._c * self._level * relative + self._c * self._c) - self._c
        return money


def _level(context: PolicyContext, level: float | None, times: float = 1.0) -> float:
    """Return the level, or the usual one times a factor where none is given."""
    return times * USUAL * context.data.middle_cost if level is None else in_range("level", level, 0)
