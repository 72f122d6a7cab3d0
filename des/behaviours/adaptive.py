"""Clients that learn how much more than their costs to ask, each for itself, from what it earned."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from des.behaviour import Behaviour, Outcomes, Setting
from des.behaviours.markup import LARGEST, is_share, marked_up
from des.money import MicroArray
from fl.arithmetic.draws import draw_key, uniforms
from fl.arithmetic.elementary import exp
from fl.arrays import FloatArray, IntArray
from flmarket.core.plugin_options import in_range

__all__ = ["Adaptive"]

MOST = 20  # markups to choose from


class Adaptive(Behaviour):
    """Each client learns its markup with EXP3: a no-regret learner that sees what it earned, and nothing else.

    A client chooses a markup for each bid that it makes: each of its M bids of a round is one play of its bandit. The
    gain of a play is the profit that the bid led to, as a share of what the highest markup on the highest cost would
    yield, at most 1; it is 0 if the client was not served. With A markups and weights w, markup i is chosen with
    probability p_i = (1 - g) w_i / sum(w) + g / A, and a gain x multiplies its weight by exp(g x / (p_i A)).

    Source: Auer, Cesa-Bianchi, Freund and Schapire, "The nonstochastic multiarmed bandit problem", SIAM Journal on
    Computing 32(1), 2002, section 3.

    Fidelity to Auer et al. (EXP3, 2002): checked:
    tests/des/test_behaviour.py::test_a_profit_raises_the_weight_of_the_markup_that_earned_it.

    Fidelity to Auer et al. (EXP3, 2002), several plays in a round: off by .003 in the chance of a markup that
    earned the most in both plays of a first round, since weights change at its end:
    tests/des/test_behaviour.py::test_the_plays_of_a_round_go_by_the_weights_of_its_beginning.
    """

    def __init__(
        self,
        # what a client chooses from: 2 to 20 shares of the cost, 0 to 5, ascending
        markups: Sequence[float] = (0.0, 0.1, 0.2, 0.4, 0.8),
        exploration: float = 0.2,  # g, the part of the choices that is made at random, above 0 and at most 1
    ) -> None:
        if (
            not isinstance(markups, list | tuple)
            or not 2 <= len(markups) <= MOST
            or not all(is_share(share) for share in markups)
            or any(a >= b for a, b in pairwise(markups))
        ):
            raise ValueError(
                f"markups must be 2 to {MOST} numbers from 0 to {LARGEST:g}, each above the one before, not {markups!r}"
            )
        self._markups: FloatArray = np.array(markups, dtype=np.float64)
        self._exploration = in_range("exploration", exploration, 0, 1, above=True)

    def begin(self, setting: Setting) -> None:
        self._key = draw_key(setting.seed, "behaviour")
        self._services, self._clients = np.arange(setting.services)[:, None], setting.numbers
        self._most = self._markups[-1] * setting.highest
        self._logs: FloatArray = np.zeros((setting.clients, len(self._markups)))  # of the weights

    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        return marked_up(costs, self._markups[self._choices(round_)])

    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        return marked_up(lowest, float(self._markups[0])), marked_up(highest, float(self._markups[-1]))

    def close(self, round_: int, outcomes: Outcomes) -> None:
        services, clients = outcomes.services[outcomes.served], outcomes.clients[outcomes.served]
        profit = (outcomes.paid - outcomes.cost)[outcomes.served]
        most = self._most[services]
        gain = np.clip(np.divide(profit, most, out=np.zeros(len(profit)), where=most > 0), 0.0, 1.0)
        chosen = self._choices(round_)[services, clients]
        chance = self.chances[clients, chosen]
        np.add.at(self._logs, (clients, chosen), self._exploration / len(self._markups) * gain / chance)

    def state(self) -> Mapping[str, Any]:
        """See ``Behaviour.state``: the logarithms of the weights, [C, A]."""
        return {"weights": self._logs.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._logs = np.array(state["weights"], dtype=np.float64)

    @property
    def chances(self) -> FloatArray:
        """The probability that each client [C] chooses each markup [A] in the next round."""
        weights = exp(self._logs - self._logs.max(axis=1, keepdims=True))
        count = len(self._markups)
        # Running sums add one number after the other: the same bits on every machine.
        total = np.cumsum(weights, axis=1)[:, -1:]
        chances: FloatArray = (1.0 - self._exploration) * weights / total + self._exploration / count
        return chances

    def _choices(self, round_: int) -> IntArray:
        """Return which markup each client chooses for each service in a round, [M, C]."""
        draw = uniforms(self._key, round_, self._services, self._clients)[0]
        below = np.cumsum(self.chances, axis=1)[:, :-1]
        choices: IntArray = (draw[..., None] >= below).sum(axis=-1)
        return choices
