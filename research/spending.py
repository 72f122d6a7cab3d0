"""Rules for spending a run-long budget, and a plan whose numbers are learned: see `research/needs_rl.py`.

All of them want the dearest clients, as `dearest` does, and differ in how much of the money they release in a round
and, the plan, in how much they pay above the bids. So what one gains on another is what its timing or its prices are
worth.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np

from des.observation import Observation, Offer
from learning.client_selection.selection import fill_budget, ranking
from learning.policy import POLICIES, Policy, PolicyContext


class Spends(Policy):
    """Offers the dearest clients their bids, within what it releases for the round."""

    def __init__(self, context: PolicyContext) -> None:
        """Start without knowing the total: the first observation holds it."""
        super().__init__(context)
        self.total = 0.0

    def act(self, observation: Observation) -> Offer:
        """Fill the released part of the budget with the dearest clients."""
        left = observation.budget if observation.total_left is None else observation.total_left
        self.total = max(self.total, left)
        cap = min(observation.budget, max(0.0, self.released(observation, left)))
        prices = observation.own_bids * (1.0 + self.markup(observation))
        return fill_budget(ranking(observation, -prices), prices, cap, available=observation.available)

    def released(self, observation: Observation, left: float) -> float:
        """Return the most that may be offered in this round, money; ``left`` is what is left of the total."""
        raise NotImplementedError

    def markup(self, observation: Observation) -> float:
        """Return what is paid above each bid, as a part of it."""
        return 0.0


class Even(Spends):
    """An even share of what is left for each round that is left."""

    def released(self, observation: Observation, left: float) -> float:
        """Return the share."""
        return left / (observation.rounds - observation.round + 1)


class EveryNth(Spends):
    """The whole budget in every n-th round, so that the money lasts to the end, and nothing in the others."""

    def released(self, observation: Observation, left: float) -> float:
        """Return the round's budget, or nothing."""
        every = max(1, ceil(observation.rounds * self.context.budget / self.total))
        return self.context.budget if (observation.rounds - observation.round) % every == 0 else 0.0


class Last(Spends):
    """Nothing until what is left is just enough for the rounds that are left."""

    def released(self, observation: Observation, left: float) -> float:
        """Return the round's budget, or nothing."""
        needed = self.context.budget * (observation.rounds - observation.round)
        return self.context.budget if left > needed else 0.0


class Plan(Spends):
    """Parts of the budget and markups that follow the clock: one number for each equal stretch of the run.

    With a single part it is a one-line rule: the same part of the budget in every round, until nothing is left.
    """

    def __init__(
        self, context: PolicyContext, *, parts: Sequence[float] = (1.0,), markups: Sequence[float] = (0.0,)
    ) -> None:
        """Fix the numbers.

        Args:
            context: the market.
            parts: of the round's budget, in [0, 1], the first for the start of the run.
            markups: above the bids, at least 0.
        """
        super().__init__(context)
        self._parts, self._markups = tuple(parts), tuple(markups)

    def released(self, observation: Observation, left: float) -> float:
        """Return the part of the budget."""
        return _now(self._parts, observation) * self.context.budget

    def markup(self, observation: Observation) -> float:
        """Return the markup."""
        return _now(self._markups, observation)


def register() -> None:
    """Let the policies play under their names."""
    rules = {"spend-even": Even, "spend-nth": EveryNth, "spend-last": Last, "spend-plan": Plan}
    for name, rule in rules.items():
        if name not in POLICIES.registered:
            POLICIES.register(name, rule)


def stretch_of(rounds: int, stretches: int) -> list[int]:
    """Return the stretch of each round, [N]."""
    return (np.arange(rounds) * stretches // rounds).tolist()


def _now(numbers: Sequence[float], observation: Observation) -> float:
    return numbers[(observation.round - 1) * len(numbers) // observation.rounds]
