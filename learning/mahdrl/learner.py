"""`mahdrl`: learns a set-valued critic and the chance to be served, for all services at once.

Where it departs from Algorithm 1 (docs/mahdrl.md says what each departure is worth):

    one network for all clients (and, with ``share``, for all services) instead of one output per client
    V(S) = mean q + kappa(|S|) over the clients that were *served*, instead of the mean Q of those that were chosen
    credit by n-step advantage (``credit``) instead of the bootstrapped target (11)
    payments by planning with a learned chance to be served (``planning``) instead of the actor's gradient (9)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from des.records import Feedback, Observation, Offer
from fl.streams import stream
from learning.mahdrl.adam import Adam
from learning.mahdrl.brain import COUNT, QUALITY, WIN, Brain, Payments, wander
from learning.mahdrl.credit import Baseline, advantages, progress
from learning.mahdrl.features import CLIENT_FEATURES, WIN_FEATURES, client_features, rival_bids, win_features
from learning.mahdrl.networks import Floats, Tensors
from learning.mahdrl.replay import Replay


@dataclass(frozen=True, slots=True)
class Shape:
    """What a learner must know of its market before the first round.

    Attributes:
        services: names of all services of the market, in order.
        clients: C.
        rounds: N.
        reward_bases: Omega of each service.
    """

    services: tuple[str, ...]
    clients: int
    rounds: int
    reward_bases: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of `mahdrl`.

    Attributes:
        share: one network for all services, instead of one for each.
        payments: ``plan`` overbids where that promises more; ``bid`` never does.
        learning_rate: of Adam, for all networks.
        batch: transitions of each service in an update.
        replay: transitions of each service that are kept.
        updates: updates for each round played.
        horizon, window, control, scale: of the advantage (``credit.advantages``).
    """

    share: bool = True
    payments: Payments = "plan"
    learning_rate: float = 1e-3
    batch: int = 32
    replay: int = 4000
    updates: float = 1.0
    horizon: int = 20
    window: int = 5
    control: float = 0.5
    scale: float = 3.0


@dataclass
class _Episode:
    """What one service did in the current episode: one entry for each round."""

    transitions: list[dict[str, Any]] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


class Learner:
    """Learns for the services of one market, all at the same time.

    Attributes:
        services: names of all services that may learn; which of them do is up to each episode.
        brain: the networks, shared with torch's view of them: always what was last learned.
    """

    def __init__(self, services: Sequence[str], shape: Shape, seed: int, settings: Settings) -> None:
        self.services, self.settings = tuple(services), settings
        self._seed, self._episode = seed, 0
        agents = 1 if settings.share else len(self.services)
        self._agent = dict.fromkeys(self.services, 0)
        if not settings.share:
            self._agent = {name: index for index, name in enumerate(self.services)}
        self.brain = Brain.initial(stream(seed, "agent"), agents)
        networks = (self.brain.quality, self.brain.count, self.brain.win)
        self._parameters = [torch.from_numpy(values).requires_grad_() for values in networks]
        self._adams = [Adam(parameters, settings.learning_rate) for parameters in self._parameters]
        self._share = len(self.services) if settings.share else 1
        self._replay = Replay(
            agents,
            settings.replay * self._share,
            {
                "clients": (shape.clients, CLIENT_FEATURES),
                "win": (shape.clients, WIN_FEATURES),
                "offered": (shape.clients,),
                "contested": (1,),
                "served": (shape.clients,),
                "time": (1,),
                "advantage": (1,),
            },
        )
        self._baseline = Baseline(len(self.services), shape.rounds)
        self._gone: dict[str, _Episode] = {}
        self._due = 0.0

    def begin(self, episode: int) -> None:
        """Start an episode: every random draw in it depends on its number alone."""
        self._episode, self._gone = episode, {}

    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        """Return each service's offers: random ones with probability ``epsilon``, else what the critic thinks best."""
        offers = {}
        for name, observation in observations.items():
            rng = stream(self._seed, "explore", self._episode, observation.round, name)
            if rng.random() < epsilon:
                offers[name] = wander(observation, rng, self.settings.payments)
            else:
                offers[name] = self.brain.agent(self._agent[name]).decide(observation, self.settings.payments)
        return offers

    def observe(
        self,
        observations: Mapping[str, Observation],
        offers: Mapping[str, Offer],
        feedback: Mapping[str, Feedback],
    ) -> dict[str, float]:
        """Take in what came of a round. Learning happens at the end of the episode, when advantages are known."""
        for name, observation in observations.items():
            offer, came = offers[name], feedback[name]
            rivals, bids = rival_bids(observation), observation.own_bids
            prices = np.zeros((len(bids), 1))
            prices[offer.clients, 0] = offer.payments
            episode = self._gone.setdefault(name, _Episode())
            episode.accuracies.append(came.accuracy)
            episode.transitions.append(
                {
                    "clients": client_features(observation)[offer.clients],
                    "win": win_features(prices, bids, rivals, observation.cores)[offer.clients, 0],
                    "offered": np.ones(len(offer.clients)),
                    "contested": [len(rivals) >= observation.cores],
                    "served": came.served,
                    "time": [observation.round / observation.rounds],
                }
            )
        self._due += self.settings.updates
        return {}

    def end(self) -> dict[str, float]:
        """End the episode: store its transitions with their advantages, and learn. Returns mean losses."""
        s = self.settings
        for name, episode in self._gone.items():
            deviations = self._baseline.deviations(self.services.index(name), progress(episode.accuracies))
            if deviations is None:
                continue
            credit = advantages(deviations, horizon=s.horizon, window=s.window, control=s.control, scale=s.scale)
            for transition, advantage in zip(episode.transitions, credit.tolist(), strict=True):
                self._replay.add(self._agent[name], advantage=[advantage], **transition)
        updates, self._due = int(self._due), self._due % 1.0
        if not self._replay.stored.all():
            return {}
        rng = stream(self._seed, "replay", self._episode)
        losses = [self._update(rng) for _ in range(updates)]
        return (
            {} if not losses else dict(zip(("critic_loss", "win_loss"), np.mean(losses, axis=0).tolist(), strict=True))
        )

    def _update(self, rng: np.random.Generator) -> tuple[float, float]:
        batch = self._replay.sample(rng, self.settings.batch * self._share)
        # Offers stand at the front of their rows: what no row of the batch uses is left out.
        width = max(1, int(batch["offered"].sum(axis=2).max()))
        for name in ("clients", "win", "offered", "served"):
            batch[name] = np.ascontiguousarray(batch[name][:, :, :width])
        tensors = {name: torch.from_numpy(values) for name, values in batch.items()}
        quality, count, chance = self._parameters
        critic, win = critic_loss(quality, count, tensors), win_loss(chance, tensors)
        gradients = torch.autograd.grad(critic + win, self._parameters)
        for adam, gradient in zip(self._adams, gradients, strict=True):
            adam.step(gradient)
        return float(critic.detach()), float(win.detach())

    def state(self) -> Tensors:
        """Return all that decides how learning goes on, by name."""
        state: dict[str, Any] = {
            "brain.quality": self.brain.quality,
            "brain.count": self.brain.count,
            "brain.win": self.brain.win,
            "due": np.array([self._due]),
            **self._replay.state(),
            **self._baseline.state(),
        }
        for name, adam in zip(("quality", "count", "win"), self._adams, strict=True):
            state |= adam.state(f"adam.{name}")
        return state

    def restore(self, state: Tensors) -> None:
        """Go on where ``state`` was taken, between two episodes."""
        for name, adam in zip(("quality", "count", "win"), self._adams, strict=True):
            getattr(self.brain, name)[...] = state[f"brain.{name}"]
            adam.restore(f"adam.{name}", state)
        self._due = float(state["due"][0])
        self._replay.restore(state)
        self._baseline.restore(state)

    def agent(self) -> dict[str, Floats]:
        """Return the tensors of a trained agent: its networks alone."""
        return {"quality": self.brain.quality, "count": self.brain.count, "win": self.brain.win}


def set_values(quality: Tensor, count: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return V(S) = mean of q over S + kappa(|S|) of the served sets of a batch, [A, B].

    Args:
        quality, count: [A, P] parameters.
        batch: ``clients`` [A, B, k, 3], ``served`` [A, B, k] and ``time`` [A, B, 1].
    """
    clients, served = batch["clients"], batch["served"]
    q = QUALITY.forward(quality, clients.flatten(1, 2))[..., 0].view(served.shape)
    number = served.sum(dim=2)
    nobody, slope, curvature = COUNT.forward(count, batch["time"]).unbind(dim=2)
    log_count = number.clip(min=1).log()
    some = (q * served).sum(dim=2) / number.clip(min=1) + (slope + curvature * log_count) * log_count
    return torch.where(number > 0, some, nobody)


def critic_loss(quality: Tensor, count: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the mean squared error of V(S) against the advantages, summed over agents: eq. (10)."""
    error = batch["advantage"][..., 0] - set_values(quality, count, batch)
    return error.square().mean(dim=1).sum()


def win_loss(win: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the cross-entropy of which contested offers were served, mean over offers, summed over agents."""
    served, counts = batch["served"], batch["offered"] * batch["contested"]
    logits = WIN.forward(win, batch["win"].flatten(1, 2))[..., 0].view(served.shape)
    losses = binary_cross_entropy_with_logits(logits, served, weight=counts, reduction="none")
    return (losses.sum(dim=(1, 2)) / counts.sum(dim=(1, 2)).clip(min=1)).sum()
