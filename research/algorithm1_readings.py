"""Readings of Algorithm 1 that lost its trial, and departures from it: notebook/algorithm1.md describes each.

python research/algorithm1_readings.py "slots raw learned" --seed 0 --out agents/slots      # train one
flmarket run paper --plugin research/algorithm1_readings.py --policy algorithm1-reading:agents/slots.safetensors
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

import flmarket
from des.money import MICRO, to_micro
from des.observation import Feedback, Observation, Offer, Status
from fl.arithmetic.elementary import sigmoid
from fl.arithmetic.streams import stream
from fl.arrays import Float32Array, FloatArray
from learning.mahdrl.advantages import Baseline, advantages, progress
from learning.mahdrl.paper import (
    ActorCritic,
    Batch,
    PaperLearner,
    PaperSettings,
    Rewards,
    actor_loss,
    critic_loss,
    greedy_set,
    mean_q,
    serial_selection,
    soft_update,
)
from learning.mahdrl.stacked_networks import Adam, Mlp, Reasons, Replay
from learning.policy import Policy, PolicyContext
from learning.training import agent_files
from learning.training.loop import EpisodeRecord, MarketShape, Plan, SeatedMarket, train
from scenarios.build import Shelf
from scenarios.file.schema import Scenario
from scenarios.loader import load
from scenarios.train import AgentTraining, open_market, shape_of

SMALLEST_BUDGET = 1e-6  # money; keeps bids in units of the budget finite

HORIZON, SCALE = 10, 3.0  # of the advantage

NETWORKS, REWARDS, PAYMENTS = ("slots", "shared", "serial"), ("centred", "raw", "advantage"), ("learned", "bids")


@dataclass(frozen=True)
class Reading:
    """A reading of Algorithm 1, named by its network, by what line 11 stores and by its payments."""

    network: str = "shared"
    reward: str = "centred"
    payments: str = "learned"

    @classmethod
    def named(cls, name: str) -> "Reading":
        """Return the reading ``NETWORK REWARD PAYMENTS``."""
        reading = cls(*name.split())
        if reading not in READINGS:
            raise SystemExit(f"{name!r} is no reading; choose from {', '.join(map(str, READINGS))}")
        return reading

    def __str__(self) -> str:
        return f"{self.network} {self.reward} {self.payments}"


READINGS = tuple(
    Reading(*names) for names in product(NETWORKS, REWARDS, PAYMENTS) if names[:2] != ("serial", "advantage")
)


class Bids(ActorCritic):
    """*bids*: no payment is learned, and each client is paid its bid."""

    def markup(self, actor: Any, states: Any) -> Any:
        library: Any = np if isinstance(states, np.ndarray) else torch
        return library.zeros(states.shape[:3])


class Slots(ActorCritic):
    """*slots*: one output for each of C clients, as in P-DQN, for states [A, B, S].

    Each output sees the continuous action of all clients (Xiong et al., "Parametrized deep Q-networks learning", 2018).
    The state is own DQI [C], all bids [M, C], and the own budget, in units of which money is; *serial* adds who has
    been chosen in the slot [C].
    """

    def __init__(self, settings: PaperSettings, services: int, clients: int, *, serial: bool, learned: bool) -> None:
        super().__init__(settings.hidden, settings.bias)
        self._width = clients + services * clients + 1 + (clients if serial else 0)
        self._learned, self._clients = learned, clients
        self._actor = Mlp((self._width, *settings.hidden, clients))
        self._critic = Mlp((self._width + clients, *settings.hidden, clients))

    def state(self, clients: int) -> tuple[int, ...]:
        return (self._width,)

    def encode(self, observation: Observation) -> Float32Array:
        unit = max(observation.budget, SMALLEST_BUDGET)
        return np.concatenate([observation.dqi, observation.bids.ravel() / unit, [1.0]]).astype(np.float32)

    def markup(self, actor: Any, states: Any) -> Any:
        library: Any = np if isinstance(states, np.ndarray) else torch
        if not self._learned:
            return library.zeros((*states.shape[:2], self._clients))
        output = self._actor.forward(actor, states) - self._bias
        return sigmoid(output) if isinstance(output, np.ndarray) else torch.sigmoid(output)

    def q(self, critic: Any, states: Any, markup: Any) -> Any:
        library: Any = np if isinstance(states, np.ndarray) else torch
        return self._critic.forward(critic, library.concatenate([states, markup], axis=2))


def networks_of(reading: Reading, settings: PaperSettings, services: int, clients: int) -> ActorCritic:
    """Return the networks of a reading in a market of M services and C clients."""
    learned = reading.payments == "learned"
    if reading.network != "shared":
        return Slots(settings, services, clients, serial=reading.network == "serial", learned=learned)
    return (ActorCritic if learned else Bids)(settings.hidden, settings.bias)


class Raw(Rewards):
    """*raw*: r / Omega as the paper has it, and after an exit the same constant in all rounds to come."""

    def stored(self, agent: int, reward: float, left: int) -> float | None:
        return reward * (1.0 + sum(self._gamma**k for k in range(1, left + 1)))


class ReadingLearner(PaperLearner):
    """Algorithm 1 in one of its readings."""

    def __init__(
        self, services: Sequence[str], shape: MarketShape, seed: int, settings: PaperSettings, reading: Reading
    ) -> None:
        super().__init__(services, shape, seed, settings)
        agents, self.reading = len(self.services), reading
        self.networks = networks_of(reading, settings, len(shape.services), shape.clients)
        self.weights = self.networks.initial(stream(seed, "agent"), agents)
        self.target_weights = self.weights.copy()
        self._adam_actor = Adam(self.weights.actor.requires_grad_(), settings.actor_rate)
        self._adam_critic = Adam(self.weights.critic.requires_grad_(), settings.critic_rate)
        shapes: dict[str, tuple[int, ...]] = {name: values.shape[2:] for name, values in self._replay.fields.items()}
        shapes |= dict.fromkeys(("state", "next_state"), self.networks.state(shape.clients))
        if reading.network == "serial":
            shapes["discount"] = ()
        self._replay = Replay(agents, settings.replay, shapes)
        if reading.reward != "centred":
            self._rewards = Raw(agents, shape.rounds, settings.discount)
        # *advantage*: what an episode's transitions are credited with is known when it is over
        self._baseline = Baseline(agents, shape.rounds)
        self._played: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        self._accuracies: defaultdict[int, list[float]] = defaultdict(list)

    def begin(self, episode: int, market_index: int = 0) -> None:
        super().begin(episode, market_index)
        self._played.clear()
        self._accuracies.clear()

    def update(self, rng: Generator) -> dict[str, float]:
        s = self.settings
        batch = {name: torch.from_numpy(values) for name, values in self._replay.sample(rng, s.batch).items()}
        with torch.no_grad():
            y = self._targets(batch)
        critic = critic_loss(self.networks, self.weights.critic, batch, y)
        losses = {"critic_loss": float(critic.detach())}
        self._adam_critic.step(torch.autograd.grad(critic, self.weights.critic)[0])
        if self.reading.payments == "learned":
            actor = actor_loss(self.networks, self.weights, batch)
            losses["actor_loss"] = float(actor.detach())
            self._adam_actor.step(torch.autograd.grad(actor, self.weights.actor)[0])
        soft_update(self.target_weights, self.weights, s.soft)
        return losses

    def _targets(self, batch: Batch) -> Tensor:
        """Eq. (11); values of next states are cut to what discounted rewards of at most 1 can add up to."""
        states = batch["next_state"]
        markup = self.networks.markup(self.target_weights.actor, states)
        q = self.networks.q(self.target_weights.critic, states, markup)
        choose = best_client if self.reading.network == "serial" else greedy_set
        chosen = choose(q, batch["next_bids"] * (1.0 + markup), batch["budget"], batch["next_here"])
        most = 1.0 / (1.0 - self.settings.discount) if self.settings.discount < 1 else inf
        after = mean_q(q, chosen).clip(-most if self.reading.reward == "centred" else 0.0, most)
        discount = batch.get("discount", self.settings.discount)
        return batch["reward"] + discount * (1.0 - batch["final"]) * after

    def _xi(self, agents: Sequence[int]) -> Tensor:
        return super()._xi(agents) * (1.0 if self.reading.payments == "learned" else 0.0)

    def _store(self, agent: int, observation: Observation, offer: Offer, came: Feedback) -> None:
        if self.reading.reward == "advantage":
            self._accuracies[agent].append(came.accuracy)
        super()._store(agent, observation, offer, came)

    def _follow(self, agent: int, **after: Any) -> None:
        if self.reading.reward == "advantage" and agent in self._waiting:
            self._played[agent].append(self._waiting.pop(agent) | after)
        else:
            super()._follow(agent, **after)

    def end(self, record: EpisodeRecord | None = None) -> dict[str, float]:
        """With *advantage*, store the transitions with the n-step advantage as their reward, and as final."""
        for agent, accuracies in self._accuracies.items():
            deviations = self._baseline.deviations(agent, progress(accuracies))
            if deviations is None:  # the first episode has nothing that it could be compared with
                continue
            credit = advantages(deviations, np.ones(len(deviations)), horizon=HORIZON, scale=SCALE)
            for transition, advantage in zip(self._played[agent], credit.tolist(), strict=True):
                self._replay.add(agent, **transition | {"reward": advantage, "final": 1.0})
        return super().end(record)


@dataclass(frozen=True, slots=True)
class Pick:
    """One step of the sub-MDP."""

    state: Float32Array  # [S] s_k
    free: Any  # [C] who has not been chosen yet, and is available
    left: float  # what is left of the budget before the pick, money
    client: int  # who is picked
    markup: FloatArray  # [C] a_c


@dataclass
class Slot:
    """One agent's slot while it is being filled, in the reading *serial*: a sub-MDP over what is left of the budget.

    The paper "samples one client from the client set at a time, until exceeding the budget". Here every pick is a
    decision with a state of its own:

        state    s_k = {G, what is left of B_m, who has been chosen}, so B_m of the paper's state is what is left of it
        action   one client that is not chosen yet and fits, at its bid and the markup mu(s_k) on it
        reward   0, and r_m of the slot for its last pick
        target   y_k = max Q'(s_k+1, c', mu'(s_k+1)) within the slot, without a discount,
                 y   = r + gamma * max Q'(s', c', mu'(s')) for the last pick, where s' is the next slot's first state

    The slot ends when no client that is left fits. There is one update in each training step n, not one for each pick.
    """

    observation: Observation
    shared: Float32Array  # [S - C] state of the slot, which all its picks share; the budget is its last number
    epsilon: float = 0.0  # probability that a pick is random
    rng: Generator | None = None
    picks: list[Pick] = field(default_factory=list)
    payments: list[float] = field(default_factory=list)  # [k] what each client picked is offered, money
    q: FloatArray = field(init=False)  # [C] Q of each client before the first pick

    def __post_init__(self) -> None:
        self._left, self._free = int(to_micro(self.observation.budget)), self.observation.available.copy()
        self._chosen = np.zeros(self.observation.clients, dtype=np.bool_)

    @property
    def state(self) -> Float32Array:
        """s_k [S]: the state of the paper with what is left of the budget, and who has been chosen."""
        part = self._left / MICRO / max(self.observation.budget, SMALLEST_BUDGET)
        return np.concatenate([self.shared[:-1], [part], self._chosen]).astype(np.float32)

    def pick(self, markup: Any, q: Any) -> bool:  # [C] a_c and Q of each client
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


def fill(slots: Sequence[Slot], values: Any) -> None:
    """Let several agents pick, one client each at a time, until none fits; ``values`` gives a_c and Q for states."""
    going = [True] * len(slots)
    while any(going):
        markup, q = values(np.stack([slot.state for slot in slots]))
        going = [on and slot.pick(markup[row], q[row]) for row, (slot, on) in enumerate(zip(slots, going, strict=True))]


def best_client(q: Tensor, prices: Tensor, left: Tensor, free: Tensor) -> Tensor:
    """Return [A, B, C] which client has the highest Q of those that fit: 1 for it, and 0 for all if none does."""
    fits = (free > 0) & (prices <= left[..., None] + 1e-4)
    best = q.masked_fill(~fits, -inf).argmax(dim=2, keepdim=True)
    return torch.zeros_like(q).scatter(2, best, 1.0) * fits


class SerialLearner(ReadingLearner):
    """*serial*: what lines 8 to 11 are in the sub-MDP of ``Slot``."""

    _slots: Mapping[str, Slot]

    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        """Return each service's offers: lines 8 and 9, once for each pick; xi is the same for all picks of a slot."""
        if not observations:
            return {}
        agents = [self.services.index(name) for name in observations]
        weights, xi = self.weights.of(agents), None
        if epsilon > 0:
            self._step_noise(next(iter(observations.values())).round)
            xi = self._xi(agents)

        def values(seen: Float32Array) -> tuple[Any, Any]:
            states = torch.from_numpy(seen)[:, None]
            markup = self.networks.markup(weights.actor, states)
            if xi is not None:
                markup = (markup + xi).clip(0.0, 1.0)
            return markup[:, 0].numpy(), self.networks.q(weights.critic, states, markup)[:, 0].numpy()

        slots = {}
        for name, observation in observations.items():
            rng = stream(self._seed, "explore", self._episode, observation.round, name) if epsilon > 0 else None
            slots[name] = Slot(observation, self.networks.encode(observation), epsilon, rng)
        with torch.no_grad():
            fill(tuple(slots.values()), values)
        self._slots = slots
        return {name: slot.offer for name, slot in slots.items()}

    def _store(self, agent: int, observation: Observation, offer: Offer, came: Feedback) -> None:
        """Store the picks of a slot: lines 10 and 11. A slot without a pick stores nothing."""
        picks, bids = self._slots[observation.service].picks, observation.own_bids
        left = observation.rounds - observation.round
        over = came.status is Status.REACHED or left == 0
        reward = float(came.reward / self._shape.reward_bases[observation.service])
        earned = self._rewards.stored(agent, reward, left if over else 0)
        if earned is None:
            return
        for pick in picks:
            last = pick is picks[-1]
            self._follow(agent, next_state=pick.state, next_bids=bids, next_here=pick.free, budget=pick.left, final=0.0)
            chosen = np.zeros(len(bids))
            chosen[pick.client] = 1.0
            self._waiting[agent] = {
                "state": pick.state, "chosen": chosen, "markup": pick.markup, "reward": earned if last else 0.0,
                "discount": self.settings.discount if last else 1.0,
            }  # fmt: skip
        if over and picks:
            nothing = {"next_state": 0 * picks[-1].state, "next_bids": 0 * bids, "next_here": 0 * bids, "budget": 0.0}
            self._follow(agent, **nothing, final=1.0)


def learner_of(
    reading: Reading, services: Sequence[str], shape: MarketShape, seed: int, settings: PaperSettings
) -> PaperLearner:
    """Return a learner that has learned nothing yet."""
    kind = SerialLearner if reading.network == "serial" else ReadingLearner
    return kind(services, shape, seed, settings, reading)


@flmarket.policy("algorithm1-reading")
class ReadingPolicy(Policy):
    """Plays a trained agent of a reading."""

    summary = "learned: Algorithm 1 as another reading has it; plays only the services that it was trained for"

    def __init__(self, context: PolicyContext, *, checkpoint: str) -> None:
        super().__init__(context)
        tensors, described = agent_files.read(Path(checkpoint), "agent")
        self.reading, settings = Reading.named(described["reading"]), PaperSettings(**described["settings"])
        self._networks = networks_of(self.reading, settings, context.services, context.clients)
        agent = described["agents"].index(context.service)
        self._actor, self._critic = (tensors[name][agent : agent + 1] for name in ("actor", "critic"))

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:
        return agent_files.digest(checkpoint)

    def act(self, observation: Observation) -> Offer:
        """Return offers to the clients of the highest Q, at the actor's payments (eq. 7)."""
        return self.reasons(observation).offer

    def reasons(self, observation: Observation) -> Reasons:
        """Return what ``act`` returns, and what it follows from."""
        state = self._networks.encode(observation)
        if self.reading.network == "serial":
            slot = Slot(observation, state)
            fill([slot], self._values)
            return Reasons(slot.offer, slot.q)
        markup, q = self._values(state[None])
        return Reasons(serial_selection(observation, markup[0], q[0]), np.asarray(q[0], np.float64))

    def _values(self, states: Float32Array) -> tuple[Any, Any]:
        """Return a_c and Q of each client in states [1, ...], both [1, C]."""
        markup = self._networks.markup(self._actor, states[:, None])
        return markup[:, 0], self._networks.q(self._critic, states[:, None], markup)[:, 0]


def train_reading(
    reading: Reading,
    plan: Plan,
    out: Path,
    *,
    scenario: Scenario | None = None,  # ``paper`` on the surrogate, if not given
    settings: PaperSettings | None = None,  # those of the trial, if not given
    report: Any = lambda _: None,
) -> PaperLearner:
    """Train a reading; return the learner."""
    scenario = scenario or load("paper", ["training.backend=surrogate"])
    settings, shelf = settings or PaperSettings(), Shelf()
    training = AgentTraining((scenario,), "mahdrl-paper", {}, plan)
    services = training.learners[0]
    learner = learner_of(reading, services, shape_of(scenario), plan.seed, settings)
    about = {
        "policy": policy_of(reading),
        "reading": str(reading),
        "agents": list(services),
        "settings": asdict(settings),
    }

    def opened(
        market_index: int, episode: int, seed: int, seats: Sequence[str]
    ) -> AbstractContextManager[SeatedMarket]:
        return open_market(training, market_index, seats, episode, seed, shelf, 0)

    train(learner, opened, plan, out, about, {}, report=report)
    return learner


def policy_of(reading: Reading) -> str:
    """Return the policy that plays a reading's agents: those with the product's networks play as `mahdrl-paper`."""
    return "mahdrl-paper" if (reading.network, reading.payments) == ("shared", "learned") else "algorithm1-reading"


def main() -> None:
    """Train one reading."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reading", type=Reading.named)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    out = given.out.with_suffix(agent_files.TENSORS)
    plan = Plan(episodes=given.episodes, seed=given.seed, epsilon_episodes=max(1, min(100, given.episodes // 2)))
    train_reading(given.reading, plan, out, report=lambda row: print(json.dumps(asdict(row)), flush=True))


if __name__ == "__main__":
    main()
