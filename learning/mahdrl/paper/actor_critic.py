"""The actor mu_theta and the critic Q_omega: one network shared by all clients, or one output for each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from des.records import Observation
from fl.arrays import Float32Array
from fl.elementary import sigmoid
from learning.mahdrl.features import CLIENT_FEATURES, client_features
from learning.mahdrl.networks import Mlp

Network = Literal["slots", "passes", "clients"]
Payments = Literal["actor", "bid"]

SMALLEST_BUDGET = 1e-6  # money; keeps bids in units of the budget finite


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
    """mu_theta(s) -> a_c and Q_omega(s, a_c) -> Q of each client, for states [A, B, S] of A agents.

    The paper's critic values a discrete action, of which there are 2^C. Here it has one output per client, and the Q of
    a set of clients is made of those (``equations.mean_q``). Each output sees the continuous action of all clients, as
    in P-DQN (Xiong et al., "Parametrized deep Q-networks learning", 2018). So the actor is also led by what a client's
    Q makes of another one's payment. In MP-DQN (Bester et al., "Multi-pass Q-networks for deep reinforcement learning
    with parameterised action spaces", 2019) the same critic looks once for each client, at that client's payment alone.

    They are applied to torch tensors (learning) and to NumPy arrays (playing a trained agent, with the same bits on
    every machine; see ``learning.mahdrl.networks``).
    """

    def __init__(
        self,
        # ``slots``: one output for each of C clients, as in P-DQN; ``passes``: the same, as in MP-DQN; ``clients``: the
        # same small network for every client
        network: Network,
        payments: Payments,  # ``actor``: the actor decides on them; ``bid``, a departure: each client is paid its bid
        hidden: Sequence[int],  # neurons of the hidden layers
        services: int,  # M
        clients: int,  # C
        *,
        bias: float,  # subtracted from the actor's output
        serial: bool = False,  # whether states also say who has been chosen in the slot; with ``slots`` only
    ) -> None:
        for name, value, kinds in (("network", network, get_args(Network)), ("payments", payments, get_args(Payments))):
            if value not in kinds:
                raise ValueError(f"{name} must be {' or '.join(kinds)}, not {value!r}")
        self._network, self._learned, self._clients = network, payments == "actor", clients
        self._bias = bias
        if network != "clients":
            self.state = clients + services * clients + 1 + (clients if serial else 0)  # S, numbers in a state
            self._actor = Mlp((self.state, *hidden, clients))
            self._critic = Mlp((self.state + clients, *hidden, clients))
        else:
            self.state = clients * CLIENT_FEATURES
            self._actor = Mlp((CLIENT_FEATURES, *hidden, 1))
            self._critic = Mlp((CLIENT_FEATURES + 1, *hidden, 1))

    def initial(self, rng: Generator, agents: int) -> Weights:
        """Draw the parameters of agents that have learned nothing."""
        actor, critic = self._actor.initial(rng, agents), self._critic.initial(rng, agents)
        return Weights(torch.from_numpy(actor), torch.from_numpy(critic))

    def shapes(self, agents: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of ``Weights.tensors()``."""
        return {"actor": (agents, self._actor.parameters), "critic": (agents, self._critic.parameters)}

    def encode(self, observation: Observation) -> Float32Array:
        """Return s_m = {Psi_m, O, B_m} as numbers [S]: own DQI [C], all bids [M, C], own budget.

        The paper does not scale its state. Here money is in units of the service's own budget, which is therefore 1.
        Where bids are not public, the rivals' are zeros throughout, which tell the networks nothing.
        """
        if self._network == "clients":
            return client_features(observation).ravel()
        unit = max(observation.budget, SMALLEST_BUDGET)
        return np.concatenate([observation.dqi, observation.bids.ravel() / unit, [1.0]]).astype(np.float32)

    def markup(self, actor: Any, states: Any) -> Any:
        """Return a_c = mu(s): the markup on each client's bid, in [0, 1]; [A, B, C].

        The paper leaves the payments' range open. A markup on a client's bid keeps eq. (5) whatever the actor's output
        is: a payment is at least the bid, and at most twice that.
        """
        if not self._learned:
            return _library(states).zeros((*states.shape[:2], self._clients))
        if self._network != "clients":
            output = self._actor.forward(actor, states)
        else:
            output = self._actor.forward(actor, self._by_client(states)).reshape(*states.shape[:2], self._clients)
        output = output - self._bias
        return sigmoid(output) if isinstance(output, np.ndarray) else torch.sigmoid(output)

    def q(self, critic: Any, states: Any, markup: Any) -> Any:
        """Return Q of each client, given the state and the continuous action; [A, B, C]."""
        library = _library(states)
        together = library.concatenate
        if self._network == "slots":
            return self._critic.forward(critic, together([states, markup], axis=2))
        if self._network == "passes":
            alone = markup[..., None] * library.eye(self._clients, dtype=markup.dtype)
            seen = library.broadcast_to(states[:, :, None], (*alone.shape[:3], self.state))
            inputs = together([seen, alone], axis=3).reshape(len(states), -1, self.state + self._clients)
            return self._critic.forward(critic, inputs).reshape(alone.shape).diagonal(0, 2, 3)
        inputs = together([self._by_client(states), markup.reshape(len(states), -1, 1)], axis=2)
        return self._critic.forward(critic, inputs).reshape(markup.shape)

    def _by_client(self, states: Any) -> Any:
        """Return [A, B * C, F] from [A, B, C * F]."""
        return states.reshape(len(states), -1, CLIENT_FEATURES)


def _library(values: Any) -> Any:
    return np if isinstance(values, np.ndarray) else torch
