"""The paper's equations (7) to (12) as functions, apart from the optimiser, and the networks that they are about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from des.observation import Observation, Offer
from fl.arithmetic.elementary import sigmoid
from fl.arrays import Float32Array, FloatArray
from learning.client_selection.selection import fill_budget
from learning.mahdrl.market_model import CLIENT_FEATURES, client_features
from learning.mahdrl.networks import Mlp

Batch = Mapping[str, Tensor]
"""A mini-batch: ``state`` [A, B, C, F], ``chosen`` a_d and ``markup`` a_c [A, B, C], ``reward`` [A, B], what came next:
``next_state``, ``next_bids`` and ``next_here`` (1: the client can be selected) [A, B, C], ``final`` [A, B] (1: nothing
follows), and the ``budget`` [A, B]."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of A agents, [A, P] each: theta of the actors and omega of the critics."""

    actor: Tensor
    critic: Tensor

    def copy(self) -> "Weights":
        """Return target networks that start as these."""
        return Weights(self.actor.detach().clone(), self.critic.detach().clone())

    def of(self, agents: Sequence[int]) -> "Weights":
        """Return those of some of the agents."""
        return Weights(self.actor.detach()[list(agents)], self.critic.detach()[list(agents)])

    def tensors(self) -> dict[str, Float32Array]:
        """Return NumPy's view of them, by name."""
        return {"actor": self.actor.detach().numpy(), "critic": self.critic.detach().numpy()}


class Networks:
    """mu_theta(s) -> a_c and Q_omega(s, a_c) -> Q of each client, for states [A, B, C, F] of A agents.

    The paper's critic values a discrete action, of which there are 2^C. Here it has one output per client, and the Q of
    a set of clients is made of those (``mean_q``). The paper does not say how its networks see clients: here
    the same small network maps each client's own features, and its payment, to its output. What other readings are
    worth is in docs/decisions/algorithm1.md.

    They are applied to torch tensors (learning) and to NumPy arrays (playing a trained agent, with the same bits on
    every machine; see ``learning.mahdrl.networks``).
    """

    def __init__(
        self,
        hidden: Sequence[int],  # neurons of the hidden layers
        bias: float,  # subtracted from the actor's output
    ) -> None:
        self._bias = bias
        self._actor = Mlp((CLIENT_FEATURES, *hidden, 1))
        self._critic = Mlp((CLIENT_FEATURES + 1, *hidden, 1))

    def initial(self, rng: Generator, agents: int) -> Weights:
        """Draw the parameters of agents that have learned nothing."""
        actor, critic = self._actor.initial(rng, agents), self._critic.initial(rng, agents)
        return Weights(torch.from_numpy(actor), torch.from_numpy(critic))

    def state(self, clients: int) -> tuple[int, ...]:
        """Return the shape of a state."""
        return clients, CLIENT_FEATURES

    def encode(self, observation: Observation) -> Float32Array:
        """Return s_m = {Psi_m, O, B_m} as numbers [C, F]: DQI, bid, n / N, and how many mean bids the budget is."""
        return client_features(observation)

    def markup(self, actor: Any, states: Any) -> Any:
        """Return a_c = mu(s): the markup on each client's bid, in [0, 1]; [A, B, C].

        The paper leaves the payments' range open. A markup on a client's bid keeps eq. (5) whatever the actor's output
        is: a payment is at least the bid, and at most twice that.
        """
        output = _by_client(self._actor, actor, states) - self._bias
        return sigmoid(output) if isinstance(output, np.ndarray) else torch.sigmoid(output)

    def q(self, critic: Any, states: Any, markup: Any) -> Any:
        """Return Q of each client, given the state and the continuous action; [A, B, C]."""
        library: Any = np if isinstance(states, np.ndarray) else torch
        return _by_client(self._critic, critic, library.concatenate([states, markup[..., None]], axis=3))


def _by_client(network: Mlp, parameters: Any, inputs: Any) -> Any:
    """Apply a network to each client of each state, [A, B, C, inputs]; return [A, B, C]."""
    agents, states, clients, width = inputs.shape
    return network.forward(parameters, inputs.reshape(agents, states * clients, width)).reshape(agents, states, clients)


def serial_selection(
    observation: Observation,
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
    return torch.zeros_like(q).scatter(2, order, fits.to(q.dtype)) * here


def mean_q(q: Tensor, chosen: Tensor) -> Tensor:
    """Return [A, B] Q of a set: the mean over the clients chosen; 0 for the empty set. Both arguments are [A, B, C].

    The paper does not say how the Q of a set follows from its clients'. With the sum, targets would grow with the
    number of clients.
    """
    return (q * chosen).sum(dim=2) / chosen.sum(dim=2).clip(min=1.0)


def actor_loss(networks: Networks, weights: Weights, batch: Batch) -> Tensor:
    """Eqs. (8) and (9): minus the mean of Q(s, a_d, mu(s)), whose gradient reaches theta through a_c = mu(s) alone.

    As printed, eq. (8) takes its maximum over the discrete a_d, and eq. (9) the gradient of Q with respect to it; but
    what depends on theta is the continuous a_c. As in P-DQN, which the paper follows, both are read with a_c: the actor
    maximises Q(s, a_d, mu(s)).
    """
    q = networks.q(weights.critic.detach(), batch["state"], networks.markup(weights.actor, batch["state"]))
    return -mean_q(q, batch["chosen"]).mean(dim=1).sum()


def critic_loss(networks: Networks, critic: Tensor, batch: Batch, y: Tensor) -> Tensor:
    """Eq. (10): the mean over the batch of (y - Q(s, a_d, a_c))^2, summed over the independent agents."""
    q = networks.q(critic, batch["state"], batch["markup"])
    return (y - mean_q(q, batch["chosen"])).square().mean(dim=1).sum()


def targets(
    networks: Networks,  # mu and Q
    target: Weights,  # theta' and omega'
    batch: Batch,
    gamma: float,
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
    with torch.no_grad():
        target.actor.lerp_(own.actor, soft)
        target.critic.lerp_(own.critic, soft)
