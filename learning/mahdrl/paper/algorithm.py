"""`mahdrl-paper`: Algorithm 1 and eqs. (7)-(12), one independent agent for each service.

All agents step together in each round (design 3.11), so their networks are stacked [A, P] and updated in one batch; no
agent sees another's parameters, transitions or reward.

Where the paper is silent or slips, we chose:

    state          [C] DQI, [M, C] bids / B_m, and 1 for the own budget / B_m
    payment        bid * (1 + a), a = sigmoid(actor) in [0, 1]: at least the bid (eq. 5), at most twice that
    a_c            of all clients, also of those that a_d leaves out, as in P-DQN: the critic decides seeing them all
    random process Ornstein-Uhlenbeck for each client, restarted in each episode, as in DDPG
    set of clients descending Q, stopping at the first client that does not fit; epsilon-greedy at each pick
    Q of a set     the mean of its clients' Q, so that the targets do not grow with the number of clients
    reward         Omega^accuracy / Omega, at most 1; what an exit leaves to come (the absorbing reward) is added to the
                   last one
    bounds of Q    no value of a next state counts for more than rewards can add up to, 1 / (1 - gamma): the greedy set
                   takes the clients whose Q is overestimated the most, and without bounds Q ends several times too high
    eq. (9)        the gradient runs through the continuous action a_c; (8) is the P-DQN objective
    eq. (11)       the next action is the target actor's a_c and the greedy set by the target critic
    learning rates those of DDPG: 1e-4 for the actor, 1e-3 for the critic, Adam

The switches lead step by step to what works; with all of them set it is the study's agent "U2" (docs/mahdrl.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from des.records import Feedback, Observation, Offer, Status
from fl.arrays import Float32Array, FloatArray
from fl.streams import stream
from learning.checks import require_finite
from learning.mahdrl.adam import Adam
from learning.mahdrl.credit import Baseline, advantages, progress
from learning.mahdrl.learner import Shape
from learning.mahdrl.networks import Tensors
from learning.mahdrl.paper.actor_critic import Networks, Weights
from learning.mahdrl.paper.equations import actor_loss, critic_loss, serial_order, soft_update, targets
from learning.mahdrl.ranges import Count, NotNegative, Part, Positive, Rate
from learning.mahdrl.replay import Replay
from learning.selection import fill_budget


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters; the paper's where it prints them.

    Attributes:
        network: ``slots`` maps the state to one output per client; ``clients`` is one network that all clients share.
        payments: ``actor``, or ``bid``: no payment is learned.
        target: ``td``, eq. (11); ``double``, the same with Double-Q; or ``advantage``: the n-step advantage of
            ``credit`` in place of it.
        hidden: neurons of the hidden layers of actor and critic.
        replay: transitions kept for each agent.
        batch: transitions in an update; one update in each round.
        discount: gamma.
        bounded: cut Q of the next state at what it can be.
        soft: varsigma of eq. (12).
        actor_rate, critic_rate: learning rates of Adam.
        noise, reversion: of the random process xi: its standard deviation per round, and pull towards 0.
        horizon, scale: of the advantage.
    """

    network: Literal["slots", "clients"] = "slots"
    payments: Literal["actor", "bid"] = "actor"
    target: Literal["td", "double", "advantage"] = "td"
    hidden: tuple[Count, ...] = (120, 60)
    replay: Count = 4000
    batch: Count = 32
    discount: Part = 0.95
    bounded: bool = True
    soft: Rate = 0.01
    actor_rate: Positive = 1e-4
    critic_rate: Positive = 1e-3
    noise: NotNegative = 0.2
    reversion: Part = 0.15
    horizon: Count = 10
    scale: Positive = 3.0


class Learner:
    """The agents of all learning services. See ``training.Learner``."""

    def __init__(self, services: Sequence[str], shape: Shape, seed: int, settings: Settings) -> None:
        self.services, self.settings = tuple(services), settings
        self._seed, self._episode, self._shape = seed, 0, shape
        agents = len(self.services)
        self.networks = Networks(settings.network, settings.hidden, len(shape.services), shape.clients)
        weights = self.networks.initial(stream(seed, "agent"), agents)
        self.weights = Weights(weights.actor.requires_grad_(), weights.critic.requires_grad_())
        self.target_weights = weights.copy()
        self._adams = (
            Adam(self.weights.actor, settings.actor_rate),
            Adam(self.weights.critic, settings.critic_rate),
        )
        state = (self.networks.state,)
        clients = (shape.clients,)
        self._replay = Replay(
            agents,
            settings.replay,
            {
                "state": state, "chosen": clients, "markup": clients, "reward": (),
                "next_state": state, "next_bids": clients, "next_here": clients, "budget": (), "final": (),
            },
        )  # fmt: skip
        self._baseline = Baseline(agents, shape.rounds)
        self._noise: FloatArray = np.zeros((agents, shape.clients))
        self._continuous: dict[str, FloatArray] = {}
        self._waiting: dict[str, dict[str, Any]] = {}
        self._gone: dict[str, _Gone] = {}

    def begin(self, episode: int) -> None:
        """Restart the random process xi (line 6 of Algorithm 1)."""
        self._episode, self._waiting, self._gone = episode, {}, {}
        self._noise[...] = 0.0

    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        """Return each service's offers: lines 8 and 9 of Algorithm 1."""
        if not observations:
            return {}
        for observation in observations.values():
            require_finite(observation)
        agents = [self.services.index(name) for name in observations]
        states = np.stack([self.networks.encode(observation) for observation in observations.values()])[:, None]
        if epsilon > 0:
            self._wander(next(iter(observations.values())).round)
        weights = self.weights.of(agents)
        with torch.no_grad():
            inputs = torch.from_numpy(states)
            markup = self._markups(weights.actor, inputs)
            if epsilon > 0 and self.settings.payments == "actor":
                markup = (markup + torch.from_numpy(self._noise[agents, None].astype(np.float32))).clip(0.0, 1.0)
            q = self.networks.q(weights.critic, inputs, markup)
        offers = {}
        for row, (name, observation) in enumerate(observations.items()):
            rng = stream(self._seed, "explore", self._episode, observation.round, name) if epsilon > 0 else None
            order = serial_order(q[row, 0].numpy(), epsilon, rng)
            self._continuous[name] = markup[row, 0].numpy().astype(np.float64)
            payments = observation.own_bids * (1.0 + self._continuous[name])
            offers[name] = fill_budget(
                order, payments, observation.budget, stop_at_misfit=True, available=observation.available
            )
        return offers

    def observe(
        self,
        observations: Mapping[str, Observation],
        offers: Mapping[str, Offer],
        feedback: Mapping[str, Feedback],
    ) -> dict[str, float]:
        """Store the transitions (line 11) and update all networks once (lines 13 to 15)."""
        for name, observation in observations.items():
            came = feedback[name]
            state, bids = self.networks.encode(observation), observation.own_bids
            if name in self._waiting:
                self._store(name, next_state=state, next_bids=bids, next_here=observation.available, final=0.0)
            chosen = np.zeros(len(bids))
            chosen[offers[name].clients] = 1.0
            left = observation.rounds - observation.round
            over = came.status is Status.REACHED or left == 0
            reward = self._reward(name, came, left if over else 0)
            self._waiting[name] = {
                "state": state, "chosen": chosen, "markup": self._continuous[name], "reward": reward,
                "budget": observation.budget,
            }  # fmt: skip
            self._gone.setdefault(name, _Gone()).accuracies.append(came.accuracy)
            if over:
                nothing = {"next_state": 0 * state, "next_bids": 0 * bids, "next_here": 0 * bids}
                self._store(name, **nothing, final=1.0)
        if not self._replay.stored.all():
            return {}
        return self._update(stream(self._seed, "replay", self._episode, next(iter(observations.values())).round))

    def end(self) -> dict[str, float]:
        """End the episode; with ``target = "advantage"`` its transitions are stored only now."""
        s = self.settings
        if s.target == "advantage":
            for name, gone in self._gone.items():
                agent = self.services.index(name)
                deviations = self._baseline.deviations(agent, progress(gone.accuracies))
                if deviations is None:
                    continue
                credit = advantages(deviations, np.ones(len(deviations)), horizon=s.horizon, scale=s.scale)
                for transition, advantage in zip(gone.transitions, credit.tolist(), strict=True):
                    self._replay.add(agent, **transition | {"reward": advantage, "final": 1.0})
        return {}

    def _markups(self, actor: Tensor, states: Tensor) -> Tensor:
        if self.settings.payments == "bid":
            return torch.zeros(*states.shape[:2], self._shape.clients)
        return self.networks.markup(actor, states)

    def _wander(self, round_: int) -> None:
        """Let the random process xi take one step."""
        step = stream(self._seed, "noise", self._episode, round_).normal(size=self._noise.shape)
        self._noise += self.settings.noise * step - self.settings.reversion * self._noise

    def _reward(self, name: str, came: Feedback, left: int) -> float:
        """Return r / Omega; an episode's last with the discounted absorbing reward of the ``left`` rounds."""
        reward = float(came.reward / self._shape.reward_bases[name])
        gamma = self.settings.discount
        return reward * (1.0 + sum(gamma**k for k in range(1, left + 1)))

    def _store(self, name: str, **after: Any) -> None:
        transition = self._waiting.pop(name) | after
        if self.settings.target != "advantage":
            self._replay.add(self.services.index(name), **transition)
        else:
            self._gone[name].transitions.append(transition)

    def _update(self, rng: Generator) -> dict[str, float]:
        s = self.settings
        batch = {k: torch.from_numpy(v) for k, v in self._replay.sample(rng, s.batch).items()}
        with torch.no_grad():
            y = targets(
                self.networks, self.target_weights, batch, s.discount, learned_payments=s.payments == "actor",
                chooser=self.weights.critic if s.target == "double" else None,
                most=1.0 / (1.0 - s.discount) if s.bounded and s.discount < 1 else inf,
            )  # fmt: skip
        critic = critic_loss(self.networks, self.weights.critic, batch, y)
        losses = {"critic_loss": float(critic.detach())}
        self._adams[1].step(torch.autograd.grad(critic, self.weights.critic)[0])
        if s.payments == "actor":
            actor = actor_loss(self.networks, self.weights, batch)
            losses["actor_loss"] = float(actor.detach())
            self._adams[0].step(torch.autograd.grad(actor, self.weights.actor)[0])
        soft_update(self.target_weights, self.weights, s.soft)
        return losses

    def state(self) -> Tensors:
        """Return all that decides how learning goes on, between two episodes."""
        own, target = self.weights.tensors(), self.target_weights.tensors()
        return {
            **{f"own.{name}": values for name, values in own.items()},
            **{f"target.{name}": values for name, values in target.items()},
            **self._adams[0].state("adam.actor"),
            **self._adams[1].state("adam.critic"),
            **self._replay.state(),
            **self._baseline.state(),
        }

    def restore(self, state: Tensors) -> None:
        """Go on where ``state`` was taken."""
        for prefix, weights in (("own", self.weights), ("target", self.target_weights)):
            for name, values in weights.tensors().items():
                values[...] = state[f"{prefix}.{name}"]
        self._adams[0].restore("adam.actor", state)
        self._adams[1].restore("adam.critic", state)
        self._replay.restore(state)
        self._baseline.restore(state)

    def agent(self) -> dict[str, Float32Array]:
        """Return what a trained agent needs to play: its actor and its critic."""
        return self.weights.tensors()


@dataclass
class _Gone:
    """What one service did in the current episode."""

    transitions: list[dict[str, Any]] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
