"""Our reading of Algorithm 1 of the paper, line by line: one independent agent for each service (`mahdrl-paper`).

    1   initialise actor and critic, and their target networks        PaperLearner
    2   initialise learning parameters and the replay buffer B        PaperSettings, PaperLearner, loop.Plan
    3   for each agent                                                all agents step together
    4     obtain an initial state                                     line 8 obtains it, too
    5     for each episode                                            loop.train
    6       generate a random process xi; total reward R = 0          PaperLearner.begin
    7       for each training step                                    loop.play_episode
    8         obtain the state; a_c = mu(s) + xi                      PaperLearner.act
    9         a_d by a preset policy, e.g. epsilon-greedy             PaperLearner.act
    10        execute (a_d, a_c); obtain reward and next state        the market; PaperLearner.observe
    11        store the tuple in B                                    PaperLearner.observe
    12        R += r                                                  loop.play_episode
    13        sample a mini-batch                                     PaperLearner.update
    14        update the actor by (9), the critic by (10) and (11)    PaperLearner.update
    15        update the target networks by (12)                      PaperLearner.update
    18    return R                                                    the training log

Departures, and what we chose where the paper leaves something open, are described where they occur.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from annotated_doc import Doc
from numpy.random import Generator
from torch import Tensor

from des.observation import Feedback, Observation, Offer
from des.reward import discounts
from fl.arithmetic.elementary import sigmoid
from fl.arithmetic.streams import stream
from fl.arrays import Float32Array, FloatArray
from learning.client_selection.selection import fill_budget
from learning.mahdrl.advantages import Baseline
from learning.mahdrl.hyper_parameters import Count, NotNegative, Part, Positive, Rate
from learning.mahdrl.market_model import CLIENT_FEATURES, client_features
from learning.mahdrl.stacked_networks import Adam, Mlp, Reasons, Replay, fill
from learning.policy import Policy, PolicyContext
from learning.training import agent_files
from learning.training.agent_files import Tensors
from learning.training.loop import EpisodeRecord, Learner, MarketShape

NAME = "mahdrl-paper"
SLOWEST_RATE = 0.03  # rate per episode at which the usual rewards forget once they have seen 33 of them

SCALE = 5.0  # brings what one choice changes to a size at which the networks learn


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """Hyper-parameters of Algorithm 1."""

    hidden: Annotated[tuple[Count, ...], Doc("Neurons of actor's and critic's hidden layers; the paper's.")] = (120, 60)
    replay: Annotated[Count, Doc("Transitions kept for each agent; the paper's.")] = 4000
    batch: Annotated[Count, Doc("Transitions in an update; the paper's.")] = 32
    discount: Annotated[Part, Doc("Gamma; the paper's.")] = 0.95
    soft: Annotated[Rate, Doc("Varsigma of eq. (12); the paper's.")] = 0.01
    bias: Annotated[
        NotNegative,
        Doc("""Subtracted from the actor's output before the sigmoid, so that an untrained actor pays about 0.7 % above
        the bid (with 2: 12 %), not 50 %; ours."""),
    ] = 5.0
    # DDPG: Lillicrap et al., "Continuous control with deep reinforcement learning", ICLR 2016
    actor_rate: Annotated[Positive, Doc("Learning rate of the actor's Adam; DDPG's.")] = 1e-4
    critic_rate: Annotated[Positive, Doc("Learning rate of the critic's Adam; DDPG's.")] = 1e-3
    noise: Annotated[
        NotNegative, Doc("The standard deviation per round of the random process xi, which is DDPG's; ours.")
    ] = 0.05
    reversion: Annotated[Part, Doc("Its pull towards 0; DDPG's.")] = 0.15


Batch = Mapping[str, Tensor]
"""A mini-batch: ``state`` [A, B, C, F], ``chosen`` a_d and ``markup`` a_c [A, B, C], ``reward`` [A, B], what came next:
``next_state``, ``next_bids`` and ``next_here`` (1: the client can be selected) [A, B, C], ``final`` [A, B] (1: nothing
follows; 0: the state after a whole slot), and the ``budget`` [A, B]."""


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


class ActorCritic:
    """mu_theta(s) -> a_c and Q_omega(s, a_c) -> Q of each client, for states [A, B, C, F] of A agents.

    The paper's critic values a discrete action, of which there are 2^C. Here it has one output per client, and the Q of
    a set of clients is made of those (``mean_q``). The paper does not say how its networks see clients: here
    the same small network maps each client's own features, and its payment, to its output. What other readings are
    worth is in docs/decisions/algorithm1.md.

    They are applied to torch tensors (learning) and to NumPy arrays (playing a trained agent, with the same bits on
    every machine; see ``learning.mahdrl.stacked_networks``).
    """

    def __init__(
        self,
        hidden: Sequence[int],  # neurons of the hidden layers
        bias: float,  # subtracted from the actor's output
    ) -> None:
        self._bias = bias
        self._actor = Mlp((CLIENT_FEATURES, *hidden, 1))
        self._critic = Mlp((CLIENT_FEATURES + 1, *hidden, 1))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Those of an agent's parameters, by network."""
        return {"actor": (1, self._actor.parameters), "critic": (1, self._critic.parameters)}

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


def soft_update(target: Weights, weights: Weights, soft: float) -> None:
    """Eq. (12): theta' <- varsigma * theta + (1 - varsigma) * theta', and the same for omega'."""
    with torch.no_grad():
        target.actor.lerp_(weights.actor, soft)
        target.critic.lerp_(weights.critic, soft)


class PaperLearner(Learner):
    """The agents of all learning services.

    As printed, an agent trains to the end before the next one begins, though each round needs the offers of all. Here
    all agents step together. They stay independent: none sees another's parameters, transitions or rewards. Their
    parameters are stacked, [A, P], only so that one batched operation serves them all.
    """

    def __init__(self, services: Sequence[str], shape: MarketShape, seed: int, settings: PaperSettings) -> None:
        self.services, self.settings = tuple(services), settings
        self._seed, self._episode, self._shape = seed, 0, shape
        s, agents, clients = settings, len(self.services), (shape.clients,)

        # Line 1. The target networks begin as copies: theta' = theta, omega' = omega.
        self.networks = ActorCritic(s.hidden, s.bias)
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

    def begin(self, episode: int, market_index: int = 0) -> None:
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
            # Line 8. The actor's output is a markup in [0, 1] (ActorCritic.markup); xi must not leave that.
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

    def _store(self, agent: int, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        """Store what is complete by now: lines 10 and 11.

        The paper's tuple is (s, a_d, a_c, s'). Eq. (11) also needs the reward, whether anything follows, and, to find
        the greedy a_d', the bids of the next round, who is online in it, and the budget.
        """
        left = observation.rounds - observation.round
        over = feedback.status.leaves or left == 0
        # It is r / Omega, at most 1: the services' Omega differ, and the size of their Q must not.
        reward = float(feedback.reward / self._shape.reward_bases[observation.service])
        earned = self._rewards.stored(agent, reward, left if over else 0, feedback.length)
        if earned is None:
            return
        state, bids = self.networks.encode(observation), observation.own_bids
        self._follow(agent, next_state=state, next_bids=bids, next_here=observation.available)
        # a_c of all clients is stored, also of those that a_d leaves out: the critic saw them all.
        chosen = np.zeros(len(bids))
        chosen[offer.clients] = 1.0
        self._waiting[agent] = {
            "state": state, "chosen": chosen, "markup": self._continuous[observation.service],
            "reward": earned, "budget": observation.budget,
            # what follows counts gamma^length: the less of gamma the longer the round
            "final": 1.0 - self.settings.discount ** (feedback.length - 1.0),
        }  # fmt: skip
        if over:
            nothing = {"next_state": 0 * state, "next_bids": 0 * bids, "next_here": 0 * bids}
            self._follow(agent, **nothing, final=1.0)

    def _follow(self, agent: int, **after: Any) -> None:
        """Store the transition of the agent's last round, if there is one, with what followed it."""
        if agent in self._waiting:
            self._replay.add(agent, **{**self._waiting.pop(agent), **after})

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

    def end(self, record: EpisodeRecord | None = None) -> dict[str, float]:
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
        length: float = 1.0,  # of the round, in slots
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
        return SCALE * float(np.sum(discounts(self._gamma, length, left) * above))

    def end(self) -> None:
        """End the episode: later ones are compared with it, too, at a constant reward after an exit."""
        for agent, rewards in self._episode.items():
            self._usual.add(agent, np.array(rewards))

    def state(self) -> Tensors:
        return self._usual.state()


class MahdrlPaper(Policy):
    """Our reading of the paper's Algorithm 1, trained.

    Fidelity to Cheng et al. (2023), eqs. (9) to (12): checked:
    tests/learning/mahdrl/test_paper.py::test_the_actors_gradient_runs_through_the_payments_of_the_chosen,
    tests/learning/mahdrl/test_paper.py::test_the_critics_loss_is_the_mean_squared_error_of_the_sets,
    tests/learning/mahdrl/test_paper.py::test_the_target_bootstraps_from_the_greedy_set_of_the_target_networks,
    tests/learning/mahdrl/test_paper.py::test_soft_updates.

    Fidelity to Cheng et al. (2023), Algorithm 1: interpretation: what the text leaves open is read as
    research/notebook/algorithm1.md says.
    """

    summary = "learned: the paper's Algorithm 1, as we read it; plays only the services that it was trained for"

    def __init__(
        self,
        context: PolicyContext,
        *,
        # file of ``flmarket train --policy mahdrl-paper``; if not given, the agent that comes with flmarket, for the
        # scenario ``paper``
        checkpoint: str | None = None,
    ) -> None:
        super().__init__(context)
        settings, networks = agent_files.load(
            checkpoint,
            NAME,
            context.service,
            PaperSettings,
            lambda chosen: ActorCritic(chosen.hidden, chosen.bias).shapes,
        )
        self._networks = ActorCritic(settings.hidden, settings.bias)
        self._actor, self._critic = networks["actor"], networks["critic"]

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:
        return agent_files.digest(checkpoint, NAME)

    def act(self, observation: Observation) -> Offer:
        """Return offers to the clients of the highest Q, at the actor's payments (eq. 7)."""
        return self.reasons(observation).offer

    def reasons(self, observation: Observation) -> Reasons:
        state = self._networks.encode(observation)[None, None]
        markup = self._networks.markup(self._actor, state)
        q = self._networks.q(self._critic, state, markup)
        offer = serial_selection(observation, markup[0, 0], q[0, 0])
        return Reasons(offer, np.asarray(q[0, 0], np.float64))
