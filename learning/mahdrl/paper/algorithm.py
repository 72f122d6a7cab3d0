"""Our reading of Algorithm 1 of the paper, line by line: one independent agent for each service (`mahdrl-paper`).

    1   initialise actor and critic, and their target networks        Learner.__init__
    2   initialise learning parameters and the replay buffer B        Settings, Learner.__init__, training.Plan
    3   for each agent                                                all agents step together
    4     obtain an initial state                                     line 8 obtains it, too
    5     for each episode                                            training.train
    6       generate a random process xi; total reward R = 0          Learner.begin
    7       for each training step                                    training.play_episode
    8         obtain the state; a_c = mu(s) + xi                      Learner.act
    9         a_d by a preset policy, e.g. epsilon-greedy             Learner.act
    10        execute (a_d, a_c); obtain reward and next state        the market; Learner.observe
    11        store the tuple in B                                    Learner.observe
    12        R += r                                                  training.play_episode
    13        sample a mini-batch                                     Learner.update
    14        update the actor by (9), the critic by (10) and (11)    Learner.update
    15        update the target networks by (12)                      Learner.update
    18    return R                                                    the training log

Departures, and what we chose where the paper leaves something open, are described where they occur.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from des.observation import Feedback, Observation, Offer, Status
from fl.arithmetic.streams import stream
from fl.arrays import Float32Array, FloatArray
from learning.mahdrl import training
from learning.mahdrl.advantages import Baseline, Lived
from learning.mahdrl.networks import Adam, Replay, Tensors, fill
from learning.mahdrl.paper.equations import Networks, actor_loss, critic_loss, serial_selection, soft_update, targets
from learning.mahdrl.paper.settings import Settings
from learning.mahdrl.training import Shape

SLOWEST_RATE = 0.03  # rate per episode at which the usual rewards forget once they have seen 33 of them

SCALE = 5.0  # brings what one choice changes to a size at which the networks learn


class Learner(training.Learner):
    """The agents of all learning services.

    As printed, an agent trains to the end before the next one begins, though each round needs the offers of all. Here
    all agents step together. They stay independent: none sees another's parameters, transitions or rewards. Their
    parameters are stacked, [A, P], only so that one batched operation serves them all.
    """

    def __init__(self, services: Sequence[str], shape: Shape, seed: int, settings: Settings) -> None:
        self.services, self.settings = tuple(services), settings
        self._seed, self._episode, self._shape = seed, 0, shape
        s, agents, clients = settings, len(self.services), (shape.clients,)

        # Line 1. The target networks begin as copies: theta' = theta, omega' = omega.
        self.networks = Networks(s.hidden, s.bias)
        self.weights = self.networks.initial(stream(seed, "agent"), agents)
        self.target_weights = self.weights.copy()
        # The paper names no optimiser and no learning rates; these are DDPG's.
        self._adam_actor = Adam(self.weights.actor.requires_grad_(), s.actor_rate)
        self._adam_critic = Adam(self.weights.critic.requires_grad_(), s.critic_rate)

        # Line 2. One replay buffer for each agent; EP and N are the training's and the market's.
        state = self.networks.state(shape.clients)
        fields = {
            "state": state, "chosen": clients, "markup": clients, "reward": (),
            "next_state": state, "next_bids": clients, "next_here": clients, "budget": (), "final": (),
        }  # fmt: skip
        self._replay = Replay(agents, s.replay, fields)
        self._rewards = Rewards(agents, shape.rounds, s.discount)

        # By agent, the transition of its last round: it is complete once the state that follows is known, which comes
        # with the next round, or never if the round is the agent's last one.
        self._waiting: dict[int, dict[str, Any]] = {}
        self._noise: FloatArray = np.zeros((agents, shape.clients))
        self._continuous: dict[str, Float32Array] = {}

    def begin(self, episode: int, market: int = 0) -> None:
        """Start an episode: line 6.

        The paper names no random process; this is DDPG's, an Ornstein-Uhlenbeck process for each client of each agent.
        """
        self._episode = episode
        self._waiting.clear()
        self._rewards.begin()
        self._noise[...] = 0.0

    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        """Return each service's offers: lines 8 and 9. With an ``epsilon`` of 0 nothing is explored."""
        if not observations:
            return {}
        agents = [self.services.index(name) for name in observations]
        explores = epsilon > 0
        with torch.no_grad():
            # Line 8. The actor's output is a markup in [0, 1] (equations.Networks.markup); xi must not leave that.
            weights = self.weights.of(agents)
            encoded = np.stack([self.networks.encode(observation) for observation in observations.values()])
            states = torch.from_numpy(encoded)[:, None]
            markup = self.networks.markup(weights.actor, states)
            if explores:
                self._step_noise(next(iter(observations.values())).round)
                markup = (markup + self._xi(agents)).clip(0.0, 1.0)
            q = self.networks.q(weights.critic, states, markup)
        # Line 9.
        offers = {}
        for row, (name, observation) in enumerate(observations.items()):
            rng = stream(self._seed, "explore", self._episode, observation.round, name) if explores else None
            self._continuous[name] = markup[row, 0].numpy()
            offers[name] = serial_selection(observation, self._continuous[name], q[row, 0].numpy(), epsilon, rng)
        return offers

    def observe(
        self, observations: Mapping[str, Observation], offers: Mapping[str, Offer], feedback: Mapping[str, Feedback]
    ) -> dict[str, float]:
        """Take in what came of a round, and learn: lines 10 to 15. Returns the losses by name."""
        for name, observation in observations.items():
            self._store(self.services.index(name), observation, offers[name], feedback[name])
        # The paper does not say when the updates begin: here, as soon as there is a transition of each agent.
        if not self._replay.stored.all():
            return {}
        return self.update(stream(self._seed, "replay", self._episode, next(iter(observations.values())).round))

    def _store(self, agent: int, observation: Observation, offer: Offer, came: Feedback) -> None:
        """Store what is complete by now: lines 10 and 11.

        The paper's tuple is (s, a_d, a_c, s'). Eq. (11) also needs the reward, whether anything follows, and, to find
        the greedy a_d', the bids of the next round, who is online in it, and the budget.
        """
        left = observation.rounds - observation.round
        over = came.status is Status.REACHED or left == 0
        # It is r / Omega, at most 1: the services' Omega differ, and the size of their Q must not.
        reward = float(came.reward / self._shape.reward_bases[observation.service])
        earned = self._rewards.stored(agent, reward, left if over else 0)
        if earned is None:
            return
        state, bids = self.networks.encode(observation), observation.own_bids
        self._follow(agent, next_state=state, next_bids=bids, next_here=observation.available, final=0.0)
        # a_c of all clients is stored, also of those that a_d leaves out: the critic saw them all.
        chosen = np.zeros(len(bids))
        chosen[offer.clients] = 1.0
        self._waiting[agent] = {
            "state": state, "chosen": chosen, "markup": self._continuous[observation.service],
            "reward": earned, "budget": observation.budget,
        }  # fmt: skip
        if over:
            nothing = {"next_state": 0 * state, "next_bids": 0 * bids, "next_here": 0 * bids}
            self._follow(agent, **nothing, final=1.0)

    def _follow(self, agent: int, **after: Any) -> None:
        """Store the transition of the agent's last round, if there is one, with what followed it."""
        if agent in self._waiting:
            self._replay.add(agent, **self._waiting.pop(agent), **after)

    def update(self, rng: Generator) -> dict[str, float]:
        """Update all networks once: lines 13 to 15. Returns the losses by name."""
        s = self.settings
        # Line 13.
        batch = {name: torch.from_numpy(values) for name, values in self._replay.sample(rng, s.batch).items()}

        # Line 14. Which network goes first makes a difference. We follow DDPG: the critic.
        with torch.no_grad():
            y = targets(self.networks, self.target_weights, batch, s.discount)
        critic = critic_loss(self.networks, self.weights.critic, batch, y)
        self._adam_critic.step(torch.autograd.grad(critic, self.weights.critic)[0])
        actor = actor_loss(self.networks, self.weights, batch)
        self._adam_actor.step(torch.autograd.grad(actor, self.weights.actor)[0])

        # Line 15.
        soft_update(self.target_weights, self.weights, s.soft)
        return {"critic_loss": float(critic.detach()), "actor_loss": float(actor.detach())}

    def end(self, lived: Lived | None = None) -> dict[str, float]:
        """End the episode: later rewards are compared with those of this one, too."""
        self._rewards.end()
        return {}

    def _step_noise(self, round_: int) -> None:
        step = stream(self._seed, "noise", self._episode, round_).normal(size=self._noise.shape)
        self._noise += self.settings.noise * step - self.settings.reversion * self._noise

    def _xi(self, agents: Sequence[int]) -> Tensor:
        """Return xi as it is added to the markups of some agents, [A, 1, C]."""
        return torch.from_numpy(self._noise[agents, None].astype(np.float32))

    def state(self) -> Tensors:
        """Return everything that later learning depends on, between two episodes."""
        return {**self._arrays(), **self._replay.state()}

    def restore(self, state: Tensors) -> None:
        fill(self._arrays(), state)
        self._replay.restore(state)

    def _arrays(self) -> Tensors:
        """Return the part of the state that is always of the same shape."""
        return {
            **{f"own.{name}": values for name, values in self.weights.tensors().items()},
            **{f"target.{name}": values for name, values in self.target_weights.tensors().items()},
            **self._adam_actor.state("adam.actor"),
            **self._adam_critic.state("adam.critic"),
            **self._rewards.state(),
        }

    def agent(self) -> dict[str, Float32Array]:
        """Return what a trained agent needs to play: its actor and its critic."""
        return self.weights.tensors()


class Rewards:
    """The reward that line 11 stores: r / Omega less the usual one, which is ours.

    r = Omega^accuracy climbs from near 0 to 1 whatever a service does, and that trend is far larger than what one
    round's choice changes. So rewards are centred: measured from a running mean over the earlier episodes at the same
    round n. It depends on n alone and episodes are equally long, so it takes the same from the return of every policy.
    """

    def __init__(self, agents: int, rounds: int, gamma: float) -> None:
        self._gamma = gamma
        self._usual = Baseline(agents, rounds, slowest=SLOWEST_RATE)
        self._episode: defaultdict[int, list[float]] = defaultdict(list)

    def begin(self) -> None:
        self._episode.clear()

    def stored(
        self,
        agent: int,  # its index
        reward: float,  # r / Omega of the round
        left: int,  # after its last round, how many rounds of the market are to come; 0 before
    ) -> float | None:
        """Return what is stored of an agent's round; None in the first episode, which has no earlier ones.

        A service that exits "still gets a constant reward" in the rounds to come. It takes no decisions in them, so its
        last transition gets all of that, discounted.
        """
        now = len(self._episode[agent])
        self._episode[agent].append(reward)
        if not self._usual.episodes[agent]:
            return None
        above = reward - self._usual.mean[agent, now : now + left + 1]
        return SCALE * float(np.sum(self._gamma ** np.arange(left + 1) * above))

    def end(self) -> None:
        """End the episode: later ones are compared with it, too, at a constant reward after an exit."""
        for agent, rewards in self._episode.items():
            self._usual.add(agent, np.array(rewards))

    def state(self) -> Tensors:
        return self._usual.state()
