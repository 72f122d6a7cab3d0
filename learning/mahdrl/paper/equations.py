"""The paper's equations (7) to (12) as functions, apart from the optimiser: each has a test with numbers by hand."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.random import Generator
from torch import Tensor, no_grad, zeros_like

from des.observation import Observation, Offer
from fl.arrays import Float32Array, FloatArray
from learning.client_selection.selection import fill_budget
from learning.mahdrl.paper.actor_critic import Weights

Batch = Mapping[str, Tensor]
"""A mini-batch: ``state`` [A, B, C, F], ``chosen`` a_d and ``markup`` a_c [A, B, C], ``reward`` [A, B], what came next:
``next_state``, ``next_bids`` and ``next_here`` (1: the client can be selected) [A, B, C], ``final`` [A, B] (1: nothing
follows), and the ``budget`` [A, B]."""


class ActorCritic(Protocol):
    """mu_theta and Q_omega; ``actor_critic.Networks``."""

    def markup(self, actor: Tensor, states: Tensor) -> Tensor:
        """Return a_c = mu_theta(s), [A, B, C]."""

    def q(self, critic: Tensor, states: Tensor, markup: Tensor) -> Tensor:
        """Return Q_omega(s, c, a_c) of each client, [A, B, C]."""


def serial_selection(
    observation: Observation,  # what the service sees
    markup: FloatArray | Float32Array,  # [C] a_c
    q: FloatArray | Float32Array,  # [C] Q of each client
    epsilon: float = 0.0,  # probability that a pick is random
    rng: Generator | None = None,  # draws; may be None if nothing is to be explored
) -> Offer:
    """Eq. (7): the hybrid action (a_d, a_c) of the highest Q, as offers; with exploration, line 9 of Algorithm 1.

    The maximum runs over 2^C sets of clients; the paper's serial selection picks one client at a time until exceeding
    the budget. So we pick by falling Q, and stop at the first client that does not fit. Each gets its bid and the
    markup on it.
    """
    payments = observation.own_bids * (1.0 + markup.astype(np.float64))
    order = serial_order(q, epsilon, rng)
    return fill_budget(order, payments, observation.budget, stop_at_misfit=True, available=observation.available)


def serial_order(q: FloatArray | Float32Array, epsilon: float, rng: Generator | None) -> list[int]:
    """Return the order in which clients are picked: the highest Q first, each pick random with ``epsilon``.

    The paper's epsilon-greedy leaves open what is random: here, each pick of its own.
    """
    order = [int(client) for client in np.argsort(-q, kind="stable")]
    if rng is None:
        return order
    picked = []
    for explores in rng.random(len(order)) < epsilon:
        picked.append(order.pop(int(rng.integers(len(order))) if explores else 0))
    return picked


def greedy_set(
    q: Tensor,  # [A, B, C]
    prices: Tensor,  # [A, B, C] what each client would be paid
    budget: Tensor,  # [A, B]
    here: Tensor,  # [A, B, C] 1 where the client can be selected; the others are passed over
) -> Tensor:
    """Return [A, B, C] which clients the serial selection takes, without exploration: eq. (7) for a batch."""
    order = q.argsort(dim=2, descending=True, stable=True)
    fits = (prices * here).gather(2, order).cumsum(dim=2) <= budget[..., None] + 1e-4
    return zeros_like(q).scatter(2, order, fits.to(q.dtype)) * here


def mean_q(q: Tensor, chosen: Tensor) -> Tensor:
    """Return [A, B] Q of a set: the mean over the clients chosen; 0 for the empty set. Both arguments are [A, B, C].

    The paper does not say how the Q of a set follows from its clients'. With the sum, targets would grow with the
    number of clients.
    """
    return (q * chosen).sum(dim=2) / chosen.sum(dim=2).clip(min=1.0)


def actor_loss(networks: ActorCritic, weights: Weights, batch: Batch) -> Tensor:
    """Eqs. (8) and (9): minus the mean of Q(s, a_d, mu(s)), whose gradient reaches theta through a_c = mu(s) alone.

    As printed, eq. (8) takes its maximum over the discrete a_d, and eq. (9) the gradient of Q with respect to it; but
    what depends on theta is the continuous a_c. As in P-DQN, which the paper follows, both are read with a_c: the actor
    maximises Q(s, a_d, mu(s)).
    """
    q = networks.q(weights.critic.detach(), batch["state"], networks.markup(weights.actor, batch["state"]))
    return -mean_q(q, batch["chosen"]).mean(dim=1).sum()


def critic_loss(networks: ActorCritic, critic: Tensor, batch: Batch, y: Tensor) -> Tensor:
    """Eq. (10): the mean over the batch of (y - Q(s, a_d, a_c))^2, summed over the independent agents."""
    q = networks.q(critic, batch["state"], batch["markup"])
    return (y - mean_q(q, batch["chosen"])).square().mean(dim=1).sum()


def targets(
    networks: ActorCritic,  # mu and Q
    target: Weights,  # theta' and omega'
    batch: Batch,  # the mini-batch
    gamma: float,  # the discount factor
) -> Tensor:
    """Eq. (11): y = r + gamma * Q'(s', a_d', a_c'), [A, B].

    The paper does not say where the next action comes from: here a_c' is the target actor's, and a_d' is greedy by the
    target critic. Nothing follows a final transition, so its y is r.
    """
    states = batch["next_state"]
    markup = networks.markup(target.actor, states)
    q = networks.q(target.critic, states, markup)
    chosen = greedy_set(q, batch["next_bids"] * (1.0 + markup), batch["budget"], batch["next_here"])
    return batch["reward"] + gamma * (1.0 - batch["final"]) * mean_q(q, chosen)


def soft_update(target: Weights, own: Weights, soft: float) -> None:
    """Eq. (12): theta' <- varsigma * theta + (1 - varsigma) * theta', and the same for omega'."""
    with no_grad():
        target.actor.lerp_(own.actor, soft)
        target.critic.lerp_(own.critic, soft)
