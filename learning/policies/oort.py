"""A policy in the manner of Oort: prefers clients with high training losses, and those that served long ago."""

from collections.abc import Mapping

import numpy as np

from des.observation import Feedback, Observation, Offer
from fl.arithmetic.elementary import log, power
from fl.arithmetic.ordered_sums import quantile
from fl.arrays import AnyArray, FloatArray, IntArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.selection import fill_budget
from learning.policy import Policy, PolicyContext

__all__ = ["OortLike"]

CLIP = 0.95
"""Utilities above this quantile count as equal to it, so that outliers are not chased (Oort's 95th percentile)."""

STALENESS = 0.1  # weight of staleness, as in Oort: ``sqrt(0.1 * log(round) / last round in which the client served)``

DECAY = 0.98
LEAST_EXPLORATION = 0.2  # the share explored falls by DECAY each round, down to this (both Oort's)


class OortLike(Policy):
    """Statistical utility, staleness and decaying exploration, fitted to a market with a budget.

    Source: Lai, Zhu, Madhyastha and Chowdhury, "Oort: Efficient federated learning via guided participant selection",
    OSDI 2021, Algorithm 1. A client's utility is ``|B| sqrt(mean loss^2)`` with the loss it reported last, clipped,
    scaled to [0, 1] over the known clients, plus the staleness bonus. What differs, and why:

    * |B|, the data size, is private in this market. The client's bid in this round, which rises with it, replaces it.
    * The market reports each client's mean loss; its square replaces the mean of squares.
    * Oort explores with a share of its clients; here it is a share of the budget, for clients that never served, in
      random order (Oort prefers fast ones; in the paper's market time does not matter).
    * There is no system utility and no pacer: both are about stragglers, which the paper's slots rule out.

    Oort was made for clients that keep their data. Where they draw new data in each round, old losses mean little.

    Fidelity to Lai et al. (Oort, 2021), staleness: checked:
    tests/learning/policies/test_rivals.py::test_oort_s_utility_by_hand.

    Fidelity to Lai et al. (Oort, 2021), scaling in its public code: off by .026 in the scaled utility of the second
    of three clients of 1, 2 and 3, as the range is that of what is clipped:
    tests/learning/policies/test_sources.py::test_oort_s_utilities_are_scaled_by_what_is_clipped_and_those_of_its_public_code_by_all.

    Fidelity to Lai et al. (Oort, 2021), exploration in its public code: off by .018 in the share that is explored
    in the first round, after which all is one round later:
    tests/learning/policies/test_sources.py::test_oort_s_exploration_decays_from_the_second_round_on_and_that_of_its_public_code_from_the_first.

    Fidelity to Lai et al. (Oort, 2021), utility of unequal losses: off by a factor of 1.41 in the utility of a
    client whose images have losses of 0 and 2 in equal parts:
    tests/learning/policies/test_sources.py::test_oort_s_mean_loss_stands_for_the_root_of_the_mean_square.

    Fidelity to Lai et al. (Oort, 2021): interpretation: the bid stands for the size of the data, the squared mean
    loss for the mean of squares, exploration is a share of the budget, the best are taken where the public code
    draws among them, and there is no system utility and no pacer.
    """

    summary = "Oort-like: highest reported loss times bid, plus staleness; explores unknown clients"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        # share of the budget for unknown clients in the first round, in [0, 1]; Oort's is 0.9
        exploration: float = 0.9,
    ) -> None:
        super().__init__(context)
        self._exploration = in_range("exploration", exploration, 0, 1)
        self._losses = np.full(context.clients, np.nan)
        self._served = np.zeros(context.clients, dtype=np.int64)  # the last round in which each served

    def act(self, observation: Observation) -> Offer:
        """Offer their bids: with the explored share of the budget to unknown clients, with the rest to the best."""
        bids, available = observation.own_bids, observation.available
        shuffled = observation.rng().permutation(observation.clients)
        shuffled = shuffled[available[shuffled]]
        unknown = shuffled[np.isnan(self._losses[shuffled])]
        known = shuffled[~np.isnan(self._losses[shuffled])]
        known = known[np.argsort(-self._utilities(known, bids[known], observation.round), kind="stable")]
        share = observation.budget * self._share(observation.round)
        explored = fill_budget(unknown, bids, share, available=available).clients
        rest = unknown[~np.isin(unknown, explored)]
        # What is left over goes to clients that still fit: an unspent budget lapses.
        order = np.concatenate([explored, known, rest])
        return fill_budget(order, bids, observation.budget, available=available)

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        done = feedback.served & ~np.isnan(feedback.losses)  # others are still at work
        clients, losses = offer.clients[done], feedback.losses[done]
        if later := [(it.client, it.loss) for it in feedback.completed if not np.isnan(it.loss)]:
            late, last = zip(*later, strict=True)
            clients, losses = np.concatenate([clients, late]), np.concatenate([losses, last])
        self._losses[clients] = losses
        self._served[clients] = feedback.round

    def state(self) -> dict[str, AnyArray]:
        return {"losses": self._losses, "served": self._served}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._losses, self._served = np.array(state["losses"]), np.array(state["served"])

    def _share(self, round_: int) -> float:
        least = min(self._exploration, LEAST_EXPLORATION)
        return max(least, self._exploration * power(DECAY, round_ - 1))

    def _utilities(self, clients: IntArray, bids: FloatArray, round_: int) -> FloatArray:
        """Return the utility [k] of known clients."""
        if not len(clients):
            return np.empty(0)
        raw = bids * self._losses[clients]
        raw = np.minimum(raw, quantile(raw, CLIP))
        spread = float(np.ptp(raw))
        scaled = (raw - raw.min()) / spread if spread > 0 else np.zeros_like(raw)
        utility: FloatArray = scaled + np.sqrt(STALENESS * log(round_) / self._served[clients])
        return utility
