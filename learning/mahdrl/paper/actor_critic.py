"""The actor mu_theta and the critic Q_omega: one network that all clients share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from des.observation import Observation
from fl.arithmetic.elementary import sigmoid
from fl.arrays import Float32Array
from learning.mahdrl.features import CLIENT_FEATURES, client_features
from learning.mahdrl.networks import Mlp


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
    a set of clients is made of those (``equations.mean_q``). The paper does not say how its networks see clients: here
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

    def shapes(self, agents: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of ``Weights.tensors()``."""
        return {"actor": (agents, self._actor.parameters), "critic": (agents, self._critic.parameters)}

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
