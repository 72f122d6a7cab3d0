"""`mahdrl`: learns a set-valued critic and the chance to be served, for all services at once.

It departs from Algorithm 1 (docs/mahdrl.md says what each departure is worth): one network for all; V(S) = mean q +
kappa(|S|) over the clients that were *served*, not those that were chosen; credit by n-step advantage, not by the
bootstrapped target (11); payments by planning with a learned chance to be served, not by the actor's gradient (9).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from des.observation import Feedback, Observation, Offer
from fl.arithmetic.streams import stream
from fl.arrays import Float32Array
from flmarket.core.errors import RunError
from learning.mahdrl.advantages import Credits
from learning.mahdrl.agent import Brain, Networks, Player, networks_of, random_offer, see
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.mahdrl.market_model import (
    RIVAL_FEATURES,
    STANDING,
    ActiveRivals,
    RunMemory,
    exactly,
    knowledge,
    rival_features,
    rivals_kept,
)
from learning.mahdrl.stacked_networks import Adam, Replay, fill
from learning.policy import PolicyContext
from learning.training.agent_files import Tensors
from learning.training.loop import EpisodeRecord, Learner, MarketShape

WITHOUT_CURVE = 0.25
"""The share of exploring services that know no learning curve, so that an agent can play without one."""

UNSURE = 1e-6  # a learned chance is cut this far from 0 and 1, so that no offer is infinitely surprising

EVERY = 160  # episodes between two earlier selves


@dataclass
class _Episode:
    """The history of one service in the current episode: one entry for each round."""

    transitions: list[dict[str, Any]] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


class MahdrlLearner(Learner):
    """Learns for the services of one market, or of several, all at the same time."""

    def __init__(
        self,
        services: Sequence[Sequence[str]],  # of each market, the names of all that may learn
        shapes: Sequence[MarketShape],  # of each market
        seed: int,  # the training's
        settings: MahdrlSettings,
        *,
        selves: bool = False,  # keep earlier selves, to play against
    ) -> None:
        self.services, self.settings = tuple(tuple(names) for names in services), settings
        self._seed, self._episode, self._market_index = seed, 0, 0
        self._most = max(len(names) for names in self.services)  # services that learn in an episode
        # the networks that learn, in memory shared with torch; they play while exploring
        self.brain = Brain.initial(stream(seed, "agent"), settings)
        # their slow average, which plays in evaluations and becomes the trained agent
        self.played = self.brain.copy()
        self._parameters = {
            name: torch.from_numpy(values).requires_grad_() for name, values in self.brain.tensors().items()
        }
        self._adams = {name: Adam(values, settings.learning_rate) for name, values in self._parameters.items()}
        self._cores = max(shape.cores for shape in shapes)
        self._rivals = max(rivals_kept(len(shape.services), shape.cores) for shape in shapes)
        clients, sizes = max(shape.clients for shape in shapes), networks_of(settings)
        self._replay = Replay(
            1,
            settings.replay * self._most,
            {
                "clients": (clients, sizes.quality.sizes[0]),
                "rivals": (clients, self._rivals, STANDING),
                "active": (self._rivals,),
                "offered": (clients,),
                "contested": (1,),
                "cores": (1,),
                "served": (clients,),
                "won": (clients,),
                "situation": (sizes.count.sizes[0],),
                "rivalry": (sizes.win.sizes[0] - RIVAL_FEATURES,),
                "advantage": (1,),
            },
        )
        # One row for each service of each market: those of the first market, then those of the second ...
        self._first = np.cumsum([0, *(len(names) for names in self.services)]).tolist()
        self._credits = Credits(self._first[-1], max(shape.rounds for shape in shapes), settings)
        self._curves = tuple(shape.curves for shape in shapes)
        self._episodes: dict[str, _Episode] = {}
        self._memories: dict[str, RunMemory] = {}
        self._due = np.zeros(1)  # updates that are still to be made
        self._keeps_selves = selves
        self._selves: list[Brain] = []  # what was played after every ``EVERY`` episodes

    def begin(self, episode: int, market_index: int = 0) -> None:
        """Start an episode in one of the markets: every random draw in it depends on its number alone."""
        self._episode, self._market_index, self._episodes, self._memories = episode, market_index, {}, {}

    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        """Return each service's offers: random with probability ``epsilon``, otherwise what the critic thinks best."""
        offers = {}
        for name, observation in observations.items():
            memory = self._memory(name, exploring=epsilon > 0)
            rng = stream(self._seed, "explore", self._episode, observation.round, name)
            if rng.random() < epsilon:
                offers[name] = random_offer(observation, rng, self.settings.payments)
            else:
                brain = self._exploring(name) if epsilon > 0 else self.played
                offers[name] = brain.decide(observation, memory)
        return offers

    def _memory(self, name: str, *, exploring: bool = False) -> RunMemory:
        """Return what a service remembers of the rounds so far, and knew before them."""
        if name not in self._memories:
            curve = self._curves[self._market_index].get(name) if self.settings.curve else None
            if exploring and curve and stream(self._seed, "untold", self._episode, name).random() < WITHOUT_CURVE:
                curve = None
            self._memories[name] = RunMemory(known=knowledge(curve))
        return self._memories[name]

    def _exploring(self, name: str) -> Brain:
        """Return one critic of the networks that learn: each acts for an episode, and tries what others would not."""
        if self.settings.members == 1:
            return self.brain
        drawn = stream(self._seed, "member", self._episode, name).integers(self.settings.members)
        return self.brain.member(int(drawn))

    def observe(
        self, observations: Mapping[str, Observation], offers: Mapping[str, Offer], feedback: Mapping[str, Feedback]
    ) -> dict[str, float]:
        """Take in what came of a round. Learning happens at the end of the episode, when advantages are known."""
        for name, observation in observations.items():
            episode = self._episodes.setdefault(name, _Episode())
            episode.accuracies.append(feedback[name].accuracy)
            episode.transitions.append(self._transition(observation, offers[name], feedback[name], self._memory(name)))
        self._due += self.settings.updates
        return {}

    def _transition(
        self, observation: Observation, offer: Offer, feedback: Feedback, memory: RunMemory
    ) -> dict[str, Any]:
        """Return what is learned from of a service's round, but for its credit."""
        rivals = ActiveRivals.of(observation)
        prices = np.zeros((observation.clients, 1))
        prices[offer.clients, 0] = offer.payments
        kept = rivals_kept(len(observation.services), observation.cores)  # as the agent will see them
        standing = rivals.standing(prices, min(kept, self._rivals))[offer.clients, 0]
        against = np.zeros((len(offer.clients), self._rivals, STANDING))
        against[:, : standing.shape[1]] = standing
        seen = see(observation, memory, self.settings)
        return {
            "clients": seen.clients[offer.clients],
            "rivals": against,
            "active": np.ones(standing.shape[1]),
            "offered": np.ones(len(offer.clients)),
            # While an intervention raises K beyond what is counted, offers teach nothing about rivals.
            "contested": [len(rivals) >= observation.cores <= self._cores],
            "cores": [observation.cores],
            "served": feedback.served,
            "won": feedback.won,
            "situation": seen.situation,
            "rivalry": seen.rivalry,
        }

    def remember(
        self, observations: Mapping[str, Observation], offers: Mapping[str, Offer], feedback: Mapping[str, Feedback]
    ) -> None:
        """Remember what came of a round to the end of the run, as an agent does that plays and does not learn."""
        if self.settings.context:
            for name, observation in observations.items():
                self._memories[name] = self._memory(name).after(observation, offers[name], feedback[name].won)

    def end(
        self,
        # what is known of the episode now; without it, ``hindsight`` gives no credit, and nothing is stored
        record: EpisodeRecord | None = None,
    ) -> dict[str, float]:
        """End the episode: store its transitions with their credit, and learn. Returns the mean losses by name."""
        for name, episode in self._episodes.items():
            row = int(self._first[self._market_index]) + self.services[self._market_index].index(name)
            credit = self._credits.of(row, name, episode.accuracies, record)
            if credit is not None:
                for transition, advantage in zip(episode.transitions, credit.tolist(), strict=True):
                    self._replay.add(0, advantage=[advantage], **transition)
        updates = int(self._due[0])
        self._due %= 1.0
        losses = []
        if self._replay.stored.all():
            rng = stream(self._seed, "replay", self._episode)
            losses = [self._update(rng) for _ in range(updates)]
        if self._keeps_selves and self._episode % EVERY == 0:
            self._selves.append(self.played.copy())
        if not losses:
            return {}
        return dict(zip(("critic_loss", "win_loss"), np.mean(losses, axis=0).tolist(), strict=True))

    def _update(self, rng: np.random.Generator) -> tuple[float, float]:
        """Update all networks once: lines 13 to 15 of Algorithm 1. Returns the losses of the critic and of the chance.

        Every critic learns from a batch of its own, the chance to be served from the first critic's.
        """
        # Line 13. Offers are at the front of their rows: what no row of the batch uses is left out.
        batch = self._replay.sample(rng, self.settings.batch * self._most, self.settings.members)
        width = max(1, int(batch["offered"].sum(axis=2).max()))
        for name in ("clients", "rivals", "offered", "served", "won"):
            batch[name] = np.ascontiguousarray(batch[name][:, :, :width])
        tensors = {name: torch.from_numpy(values) for name, values in batch.items()}
        first = {name: values[:: self.settings.members] for name, values in tensors.items()}

        # Line 14. The critic by (10), towards the advantage instead of (11); the chance to be served instead of (9).
        networks, parameters = networks_of(self.settings), self._parameters
        critic = critic_loss(parameters["quality"], parameters["count"], tensors, networks)
        win = win_loss(parameters["win"], first, self._cores, networks)
        gradients = torch.autograd.grad(critic + win, list(parameters.values()))
        for adam, gradient in zip(self._adams.values(), gradients, strict=True):
            adam.step(gradient)

        # Line 15. By (12), but it is what plays that follows; there are no target networks.
        learned = self.brain.tensors()
        for name, values in self.played.tensors().items():
            values += np.float32(self.settings.average) * (learned[name] - values)
        return float(critic.detach()) / self.settings.members, float(win.detach())

    def earlier(self, context: PolicyContext, episode: int) -> Player | None:
        """Return an earlier self, drawn at random, to play a service in an episode; None before there are any."""
        if not self._selves:
            return None
        drawn = stream(self._seed, "self", episode, context.service).integers(len(self._selves))
        return Player(context, self._selves[int(drawn)])

    def state(self) -> Tensors:
        """Return everything that later learning depends on, between two episodes."""
        selves = [brain.tensors() for brain in self._selves]
        return {
            **self._arrays(),
            **self._replay.state(),
            **{f"selves.{name}": np.stack([one[name] for one in selves]) for name in (selves[0] if selves else ())},
        }

    def restore(self, state: Tensors) -> None:
        fill(self._arrays(), state)
        self._replay.restore(state)
        selves = {name: state.get(f"selves.{name}", ()) for name in self._parameters}
        self._selves = [
            Brain(**{name: kept[at] for name, kept in selves.items()}, settings=self.settings)
            for at in range(len(selves["win"]))
        ]

    def _arrays(self) -> Tensors:
        """Return the part of the state that is always of the same shape."""
        return {
            **{f"brain.{name}": values for name, values in self.brain.tensors().items()},
            **{f"played.{name}": values for name, values in self.played.tensors().items()},
            **{key: values for name, adam in self._adams.items() for key, values in adam.state(f"adam.{name}").items()},
            **self._credits.state(),
            "due": self._due,
        }

    def agent(self) -> dict[str, Float32Array]:
        """Return the tensors of a trained agent: its networks alone."""
        return self.played.tensors()


def set_values(
    quality: Tensor,  # [A, P] parameters of that network
    count: Tensor,  # [A, P] parameters of that network
    # ``clients`` [A, B, k, features], ``served`` [A, B, k] and ``situation`` [A, B, inputs]
    batch: Mapping[str, Tensor],
    networks: Networks,  # their sizes
) -> Tensor:
    """Return V(S) = mean of q over S + kappa(|S|) of the served sets of a batch, [A, B]."""
    served = batch["served"]
    rows = _Rows(served.flatten(1))
    q = networks.quality.forward(quality, rows.of(batch["clients"].flatten(1, 2)))[..., 0]
    total = (rows.spread(q).view(served.shape) * served).sum(dim=2)
    number = served.sum(dim=2)
    none_served, slope, curvature = networks.count.forward(count, batch["situation"]).unbind(dim=2)
    log_count = number.clip(min=1).log()
    some = total / number.clip(min=1) + (slope + curvature * log_count) * log_count
    return torch.where(number > 0, some, none_served)


def critic_loss(quality: Tensor, count: Tensor, batch: Mapping[str, Tensor], networks: Networks) -> Tensor:
    """Return the mean squared error of V(S) against the advantages, summed over agents: eq. (10)."""
    error = batch["advantage"][..., 0] - set_values(quality, count, batch, networks)
    return error.square().mean(dim=1).sum()


def win_loss(
    win: Tensor,  # [A, P] parameters of the network
    # ``rivals`` [A, B, k, R, 2], ``active`` [A, B, R], ``offered`` and ``won`` [A, B, k], ``contested`` [A, B, 1], K as
    # ``cores`` [A, B, 1], and ``rivalry`` [A, B, inputs]. An offer that won teaches as much of the rivals if its client
    # did not deliver
    batch: Mapping[str, Tensor],
    most: int,  # the largest K
    networks: Networks,  # their sizes
) -> Tensor:
    """Return the cross-entropy of which contested offers won, mean over offers, summed over agents."""
    won, rivals, counts = batch["won"], batch["rivals"], batch["offered"] * batch["contested"]
    rows = _Rows(counts.flatten(1))
    standing = rows.of(rivals.flatten(1, 2))  # [A, n, R, 2]
    active, rivalry, cores = (
        rows.of(batch[name][:, :, None].expand(-1, -1, won.shape[2], -1).flatten(1, 2))
        for name in ("active", "rivalry", "cores")
    )
    everywhere = rivalry[:, :, None].expand(-1, -1, standing.shape[2], -1)
    seen = torch.cat([rival_features(standing, torch), everywhere], -1)
    outbid = networks.win.forward(win, seen.flatten(1, 2))[..., 0].view(standing.shape[:-1]).sigmoid()
    numbers = torch.stack(exactly(most, outbid * active))
    within = torch.arange(most)[:, None, None] < cores[..., 0]
    chance = (numbers * within).sum(0).clip(UNSURE, 1.0 - UNSURE)
    if not bool(chance.isfinite().all()):
        raise RunError("training diverged; lower the learning rate")
    losses = binary_cross_entropy(chance, rows.of(won.flatten(1)), weight=rows.of(counts.flatten(1)), reduction="none")
    return (losses.sum(dim=1) / counts.sum(dim=(1, 2)).clip(min=1)).sum()


class _Rows:
    """Those rows of a padded batch that count: most are padding, which networks need not look at."""

    def __init__(self, counts: Tensor) -> None:
        """Find the rows of which ``counts`` [A, rows] is above 0."""
        self._counts = (counts > 0).to(torch.uint8)
        most = max(1, int(self._counts.sum(dim=1).max()))
        # [A, n] their places among all; where an agent has fewer than another, places that do not count follow
        self.index = self._counts.argsort(dim=1, descending=True, stable=True)[:, :most]

    def of(self, values: Tensor) -> Tensor:
        """Return them [A, n, ...] of values [A, rows, ...]."""
        agents = torch.arange(len(self.index))[:, None]
        return values[agents, self.index]

    def spread(self, values: Tensor) -> Tensor:
        """Return values [A, n] at their places among all rows, [A, rows], and 0 elsewhere."""
        return torch.zeros(self._counts.shape).scatter(1, self.index, values)
