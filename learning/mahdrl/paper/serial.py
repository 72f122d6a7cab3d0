"""Another reading of the paper's serial selection: a sub-MDP inside each slot, over what is left of the budget.

The paper "samples one client from the client set at a time, until exceeding the budget". In ``algorithm``, one look at
the state ranks all clients. Here every pick is a decision with a state of its own:

    state    s_k = {G, what is left of B_m, who has been chosen}, so B_m of the paper's state is what is left of it
    action   one client that is not chosen yet and fits, at its bid and the markup mu(s_k) on it
    reward   0, and r_m of the slot for its last pick
    target   y_k = max Q'(s_k+1, c', mu'(s_k+1)) within the slot, without a discount,
             y   = r + gamma * max Q'(s', c', mu'(s')) for the last pick, where s' is the first state of the next slot

The slot ends when nobody who is left fits. Eqs. (8) to (10) and (12) stay as they are, with a_d a set of one client;
(7) is the maximum over clients instead of sets, and (11) is the target above. There is one update in each training step
n, as in Algorithm 1, not one for each pick. All of this is ours: the paper describes neither reading.
``serial_learner`` learns with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.random import Generator
from torch import Tensor, zeros_like

from des.money import MICRO, to_micro
from des.records import Observation, Offer
from fl.arrays import BoolArray, Float32Array, FloatArray
from learning.mahdrl.paper.actor_critic import SMALLEST_BUDGET, Weights
from learning.mahdrl.paper.equations import ActorCritic, Batch, mean_q

Values = Callable[[Float32Array], tuple[Any, Any]]
"""From the states of A agents [A, S] to their a_c [A, C] and Q of each client [A, C]."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One step of the sub-MDP."""

    state: Float32Array  # [S] s_k
    free: BoolArray  # [C] who has not been chosen yet, and is available
    left: float  # what is left of the budget before the pick, money
    client: int  # who is picked
    markup: FloatArray  # [C] a_c


@dataclass
class Slot:
    """One agent's slot while it is being filled."""

    observation: Observation  # what the service sees
    shared: Float32Array  # [S - C] its state at the start of the slot (``Networks.encode``)
    epsilon: float = 0.0  # probability that a pick is random
    rng: Generator | None = None  # draws; may be None if nothing is to be explored
    picks: list[Pick] = field(default_factory=list)  # the steps so far
    payments: list[float] = field(default_factory=list)  # what each of those picked is offered, money
    q: FloatArray = field(init=False)  # [C] Q of each client before the first pick

    def __post_init__(self) -> None:
        self._left, self._free = int(to_micro(self.observation.budget)), self.observation.available.copy()
        self._chosen = np.zeros(self.observation.clients, dtype=np.bool_)

    @property
    def state(self) -> Float32Array:
        """s_k [S]: the state of the paper with what is left of the budget, and who has been chosen."""
        part = self._left / MICRO / max(self.observation.budget, SMALLEST_BUDGET)
        return np.concatenate([self.shared[:-1], [part], self._chosen]).astype(np.float32)

    def pick(
        self,
        markup: Any,  # [C] a_c
        q: Any,  # [C] Q of each client
    ) -> bool:
        """Pick the client of the highest Q that fits, or a random one; return whether there was any."""
        if not self.picks:
            self.q = np.asarray(q, dtype=np.float64)
        markup = np.asarray(markup, dtype=np.float64)
        payments = self.observation.own_bids * (1.0 + markup)
        prices = to_micro(payments)
        fits = np.flatnonzero(self._free & (prices <= self._left))
        if not len(fits):
            return False
        explores = self.rng is not None and self.rng.random() < self.epsilon
        client = int(self.rng.choice(fits) if explores and self.rng else fits[np.argmax(np.asarray(q)[fits])])
        self.picks.append(Pick(self.state, self._free.copy(), self._left / MICRO, client, markup))
        self.payments.append(float(payments[client]))
        self._free[client], self._chosen[client] = False, True
        self._left -= int(prices[client])
        return True

    @property
    def offer(self) -> Offer:
        return Offer(np.array([pick.client for pick in self.picks], np.int64), np.array(self.payments, np.float64))


def fill(slots: Sequence[Slot], values: Values) -> None:
    """Let several agents pick, one client each at a time, until nobody fits: eq. (7) in the sub-MDP."""
    going = [True] * len(slots)
    while any(going):
        markup, q = values(np.stack([slot.state for slot in slots]))
        going = [on and slot.pick(markup[row], q[row]) for row, (slot, on) in enumerate(zip(slots, going, strict=True))]


def best_client(
    q: Tensor,  # [A, B, C]
    prices: Tensor,  # [A, B, C] what each client would be paid
    left: Tensor,  # [A, B] money
    free: Tensor,  # [A, B, C] 1 where the client can be picked
) -> Tensor:
    """Return [A, B, C] which client has the highest Q of those that fit: 1 for it, and 0 for all if nobody does."""
    fits = (free > 0) & (prices <= left[..., None] + 1e-4)
    best = q.masked_fill(~fits, -inf).argmax(dim=2, keepdim=True)
    return zeros_like(q).scatter(2, best, 1.0) * fits


def targets(
    networks: ActorCritic,  # mu and Q
    target: Weights,  # theta' and omega'
    # the mini-batch; ``discount`` is 1 within a slot and gamma between slots, ``next_here`` says who can be picked in
    # s', and ``budget`` what is left then
    batch: Batch,
    *,
    within: tuple[float, float] = (0.0, inf),  # what Q' is cut to; see ``equations.targets``
) -> Tensor:
    """Eq. (11) in the sub-MDP: y = r + discount * max Q'(s', c', mu'(s')), [A, B]."""
    states = batch["next_state"]
    markup = networks.markup(target.actor, states)
    q = networks.q(target.critic, states, markup)
    chosen = best_client(q, batch["next_bids"] * (1.0 + markup), batch["budget"], batch["next_here"])
    return batch["reward"] + batch["discount"] * (1.0 - batch["final"]) * mean_q(q, chosen).clip(*within)
