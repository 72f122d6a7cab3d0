"""RLB: bids by what money is worth to the clients still to come, from a dynamic programme over clients and money."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from des.money import MICRO
from des.observation import Feedback, Observation, Offer
from fl.arrays import AnyArray, FloatArray
from flmarket.core.plugin_options import is_number, whole
from learning.bidders.display import USUAL, Bidder
from learning.policy import PolicyContext

LEVELS = 64  # steps between 0 and the highest bid
BEFORE = 10  # how many clients' prices the guess of the first round counts as


@dataclass(frozen=True, slots=True)
class Values:
    """What money is worth: for so many clients still to come, the utility that it buys, in units of the mean."""

    unit: float  # the money of a step
    rows: list[FloatArray]  # for 0, 1, ... clients [steps of money]
    steps: int  # of money that are known; of fewer clients, who cannot cost as much, no more than they can

    @classmethod
    def of(
        cls,
        chances: FloatArray,  # [LEVELS + 1] the probability that the next client's price is so many steps
        unit: float,
        most: int,  # clients
        money: float,
    ) -> "Values":
        """Solve the programme, in which each client is worth the mean: ``V(n, b)`` for n below ``most``."""
        rows, steps = [np.zeros(1)], int(money / unit) + 2
        for number in range(1, most):
            width = min(number * LEVELS, steps) + 1
            later = np.pad(rows[-1], (0, width - len(rows[-1])), mode="edge")
            value = later.copy()
            for price in np.flatnonzero(chances[:width]).tolist():
                gain = 1.0 + later[: len(later) - price] - later[price:]  # falls as the price rises
                value[price:] += chances[price] * np.maximum(gain, 0.0)
            rows.append(value)
        return cls(unit, rows, steps)

    def worth(self, clients: int, steps: FloatArray) -> FloatArray:
        """Return what so much money buys of some clients, linear between steps."""
        row = self.rows[clients]
        steps = np.minimum(steps, len(row) - 1)
        below = steps.astype(np.int64)
        above = np.minimum(below + 1, len(row) - 1)
        values: FloatArray = row[below] + (steps - below) * (row[above] - row[below])
        return values

    def bids(self, clients: int, money: float, utility: FloatArray) -> FloatArray:
        """Return the most to pay [k] for a client of some utility, of so many that are still to come, itself included.

        More clients than the programme has are taken for as many as it has, with their share of the money.
        """
        known = min(clients, len(self.rows))
        steps = money / self.unit * (known / clients)
        most = min(steps, float(LEVELS))
        bids: FloatArray = np.arange(int(most) + 1, dtype=np.float64)
        lost = self.worth(known - 1, np.array([steps])) - self.worth(known - 1, steps - bids)
        at = np.searchsorted(lost, utility, side="right") - 1
        after = np.minimum(at + 1, len(lost) - 1)
        gap = lost[after] - lost[at]
        part = np.where(gap > 0, (utility - lost[at]) / np.where(gap > 0, gap, 1.0), 1.0)
        found: FloatArray = np.where(utility > 0, np.minimum(bids[at] + part, most), 0.0) * self.unit
        return found


class Rlb(Bidder):
    """Bids the most at which a client is worth more than what its price would buy of the clients still to come.

    With n clients to come and money b, ``V(n, b)`` is the utility that can be expected. The market price of a client,
    which the winner pays, has a known distribution m, and all clients later on have the mean utility u:

        V(n, b) = sum over prices p of m(p) max(u + V(n - 1, b - p), V(n - 1, b)),    V(0, b) = 0

    For a client of utility u_i the bid is the highest p with ``u_i + V(n - 1, b - p) >= V(n - 1, b)``.

    Fidelity to Cai et al. (WSDM 2017): checked:
    tests/learning/bidders/test_rlb.py::test_its_values_are_those_of_all_bids_tried,
    tests/learning/bidders/test_rlb.py::test_its_bids_earn_what_the_best_bids_earn.

    Fidelity to Cai et al. (WSDM 2017): interpretation: prices are learned from clients won and bids lost in earlier
    rounds (the product-limit estimate) unless they are given, money has 64 steps up to the highest bid, more clients
    than the horizon are taken for as many with their share of the money, and where all come at once each is bid for as
    the first.
    """

    summary = "display advertising: bids by a dynamic programme over clients and money left (RLB)"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # market prices, money, each as likely as the others; without them they are learned from round to round
        prices: Sequence[float] | None = None,
        # for how many clients the programme is solved, at most; from 1 to 500, at which it takes 64 MB
        horizon: int = 200,
    ) -> None:
        super().__init__(context)
        self._most = min(whole("horizon", horizon, 1, 500), context.clients)
        self._given = None if prices is None else _checked(prices)
        self._usual = 0.0 if self._given is not None else USUAL * context.data.middle_cost
        self._won, self._lost = np.empty(0), np.empty(0)  # prices paid, and bids that were too low
        self._values: Values | None = None

    def bids(self, observation: Observation, relative: FloatArray) -> FloatArray:
        if self._values is None or observation.budget > self._values.steps * self._values.unit:
            self._values = self._solved(max(observation.budget, self.context.budget))
        clients = self._to_come(observation)
        return self._values.bids(clients, observation.budget, relative) if clients else np.zeros(len(relative))

    def _to_come(self, observation: Observation) -> int:
        """Return for how many clients the money is: the rest of the round, or of the run if all of it may be spent."""
        turn = observation.turn
        each = int(observation.available.sum()) if turn is None else turn.of
        now = each if turn is None else turn.of - turn.number + 1
        left = observation.total_left  # which falls with the budget within a round: one is the other, or never is
        lapses = left is None or observation.budget < left
        return now if lapses else now + (observation.rounds - observation.round) * each

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Note what clients cost, and which bids were too low."""
        if self._given is not None:
            return
        paid = feedback.paid if feedback.promised is None else feedback.paid + feedback.promised
        self._won = np.concatenate([self._won, paid[feedback.served]])
        self._lost = np.concatenate([self._lost, offer.payments[~feedback.won]])
        self._values = None

    def state(self) -> dict[str, FloatArray]:
        return {"won": self._won, "lost": self._lost}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._won, self._lost = np.array(state["won"]), np.array(state["lost"])
        self._values = None

    def _solved(self, money: float) -> Values:
        """Solve the programme for so much money; what less is worth does not depend on that."""
        if self._given is not None:
            unit = float(self._given.max()) / LEVELS
            steps = np.rint(self._given / unit).astype(np.int64)
            return Values.of(np.bincount(steps, minlength=LEVELS + 1) / len(steps), unit, self._most, money)
        # Twice the highest price known, so that a price may turn out to be higher; or than any bid, if none has won.
        known = self._won if len(self._won) else self._lost
        top = 2 * max(self._usual, float(known.max(initial=0.0))) or 1.0
        unit, guess = top / LEVELS, np.full(LEVELS + 1, 1 / (LEVELS + 1))
        won, lost = (
            np.bincount(np.minimum(np.rint(it / unit), LEVELS).astype(np.int64), minlength=LEVELS + 1)
            for it in (self._won, self._lost)
        )
        count = len(self._won) + len(self._lost)
        chances = (BEFORE * guess + count * product_limit(won, lost)) / (BEFORE + count)
        return Values.of(chances, unit, self._most, money)


def product_limit(
    seen: AnyArray,  # [prices] how often each price was seen
    above: AnyArray,  # [prices] how often a price was only seen to be no less
) -> FloatArray:
    """Return the probability of each price [prices]; what is left of 1 is that of higher ones."""
    there = (seen + above)[::-1].cumsum()[::-1]  # whose price is no less, as far as is known
    stays = 1.0 - seen / np.maximum(there, 1)
    beyond = np.concatenate([[1.0], np.multiply.accumulate(stays)])
    chances: FloatArray = beyond[:-1] - beyond[1:]
    return chances


def _checked(prices: Sequence[float]) -> FloatArray:
    if not isinstance(prices, Sequence | np.ndarray) or not all(is_number(price) for price in prices):
        raise ValueError("prices must be a list of numbers")
    if not all(0 <= price < inf for price in prices) or max(prices, default=0.0) * MICRO < 1:
        raise ValueError(f"prices must be finite numbers of at least 0, one of them at least {1 / MICRO:.6f}")
    return np.array(prices, dtype=np.float64)
