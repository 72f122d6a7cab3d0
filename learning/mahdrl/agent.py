"""A trained `mahdrl` agent: the networks' inputs, its decisions by planning (eq. 7), and the policies that play it.

NumPy only: no torch is needed to play.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from des.observation import Feedback, Observation, Offer
from fl.arithmetic.elementary import sigmoid
from fl.arrays import AnyArray, BoolArray, Float32Array, FloatArray
from learning.client_selection.selection import fill_budget
from learning.mahdrl.hyper_parameters import DEFAULTS, MahdrlSettings, Payments
from learning.mahdrl.market_model import (
    CLIENT_FEATURES,
    CONTEXT,
    FOR_CHANCES,
    NUMBERS,
    RIVAL_FEATURES,
    START,
    ActiveRivals,
    RunMemory,
    client_features,
    context,
    elapsed,
    fewer_than,
    knowledge,
    purchasing_power,
    rival_features,
    rivals_kept,
)
from learning.mahdrl.planner import CountValue, plan, price_levels
from learning.mahdrl.stacked_networks import Mlp, Reasons
from learning.policy import Policy, PolicyContext
from learning.training import agent_files

NAME, SINGLE = "mahdrl", "mahdrl-single"


@dataclass(frozen=True, slots=True)
class Networks:
    quality: Mlp  # q: what a client adds to the mean quality of its set; the same network for every client
    # kappa's three coefficients, given the time and the budget: the best number early on may not be the best later
    count: Mlp
    win: Mlp  # logit of the chance that a rival outbids an offer


def networks_of(settings: MahdrlSettings) -> Networks:
    """Return the networks of an agent with the settings: wider ones for any market."""
    if not settings.context:
        return Networks(Mlp((CLIENT_FEATURES, 64, 32, 1)), Mlp((2, 16, 3)), Mlp((RIVAL_FEATURES, 32, 1)))
    known = len(CONTEXT) + (len(NUMBERS) if settings.curve else 0)
    return Networks(
        Mlp((CLIENT_FEATURES + known, 64, 32, 1)),
        Mlp((2 + known, 32, 3)),
        Mlp((RIVAL_FEATURES + len(FOR_CHANCES), 32, 1)),
    )


class Seen(NamedTuple):
    """The networks' input: an observation as features."""

    clients: Float32Array  # [C, features] of each client
    # [inputs] what the value of a number of clients depends on: n / N, what the budget can buy, and the context if it
    # is seen
    situation: Float32Array
    rivalry: Float32Array  # [inputs] the part of the context that is added to each rival's features; may be empty


def see(observation: Observation, memory: RunMemory, settings: MahdrlSettings) -> Seen:
    clients = client_features(observation, budget=settings.budget)
    power = purchasing_power(observation) if settings.budget else 0.0
    situation = np.array([elapsed(observation), power], dtype=np.float32)
    if not settings.context:
        return Seen(clients, situation, np.zeros(0, dtype=np.float32))
    market = context(observation, memory)
    known = np.concatenate([market, memory.known]) if settings.curve else market
    everywhere = np.broadcast_to(known, (len(clients), len(known)))
    return Seen(np.hstack([clients, everywhere]), np.concatenate([situation, known]), market[list(FOR_CHANCES)])


@dataclass(frozen=True, slots=True)
class Brain:
    """The parameters of an agent's networks, and what it decides by them."""

    quality: Float32Array  # [J, P] of its J critics
    count: Float32Array  # [J, P] of the same
    win: Float32Array  # [1, P]
    settings: MahdrlSettings = DEFAULTS  # what it sees and may do

    @classmethod
    def initial(cls, rng: Generator, settings: MahdrlSettings = DEFAULTS) -> Self:
        """Draw the networks of an untrained agent: to it, no number of clients is better than another."""
        networks = networks_of(settings)
        quality, count = (one.initial(rng, settings.members) for one in (networks.quality, networks.count))
        win = networks.win.initial(rng)
        count[:, -networks.count.sizes[-1] :] = 0.0
        return cls(quality, 0.1 * count, win, settings)

    def tensors(self) -> dict[str, Float32Array]:
        return {"quality": self.quality, "count": self.count, "win": self.win}

    def copy(self) -> "Brain":
        return Brain(**{name: values.copy() for name, values in self.tensors().items()}, settings=self.settings)

    def member(self, index: int) -> "Brain":
        """Return what the agent would be with one of its critics alone."""
        one = slice(index, index + 1)
        return Brain(self.quality[one], self.count[one], self.win, replace(self.settings, members=1))

    def decide(self, observation: Observation, memory: RunMemory = START) -> Offer:
        """Return the offers that the critic thinks best (eq. 7)."""
        return self._decision(observation, memory)[0]

    def reasons(self, observation: Observation, memory: RunMemory = START) -> Reasons:
        offer, q, prices, chance = self._decision(observation, memory)
        level = (prices[offer.clients] == offer.payments[:, None]).argmax(axis=1)
        return Reasons(offer, np.asarray(q, np.float64), chance[:, 0], chance[offer.clients, level])

    def _decision(self, observation: Observation, memory: RunMemory) -> tuple[Offer, Any, FloatArray, Any]:
        """Return the offer, q [C], the prices considered [C, L], and the chance to be served at each."""
        networks, seen = networks_of(self.settings), see(observation, memory, self.settings)
        prices, chance = self._prices(observation, seen.rivalry)
        q = _mean(networks.quality.forward(self.quality, seen.clients[None]))[:, 0]
        kappa = CountValue(*_mean(networks.count.forward(self.count, seen.situation[None, None]))[0].tolist())
        available, budget = observation.available, observation.budget
        turns = observation.rng().permutation(observation.clients) if self.settings.lots else None
        offer = plan(q, kappa, prices, chance, budget, available=available, turns=turns)
        return offer, q, prices, chance

    def _prices(self, observation: Observation, rivalry: Float32Array) -> tuple[FloatArray, Any]:
        """Return prices worth considering, and the chance to be served at each, both [C, L]."""
        rivals, cores = ActiveRivals.of(observation), observation.cores
        prices = price_levels(observation, rivals.bids, far=self.settings.payments == "far")
        if self.settings.payments == "bid":
            prices = prices[:, :1]
        if len(rivals) < cores:
            return prices, np.ones(prices.shape)
        standing = rivals.standing(prices, rivals_kept(len(observation.services), cores))
        return prices, self.chances(standing, cores, rivalry)

    def chances(
        self,
        standing: FloatArray,  # [..., R, 2] of its rivals
        cores: int,  # K
        rivalry: Float32Array,  # see ``Seen``
    ) -> Any:
        """Return the probability [...] that an offer is served."""
        rivals = rival_features(standing, np).astype(np.float32).reshape(-1, RIVAL_FEATURES)
        everywhere = np.broadcast_to(rivalry, (len(rivals), len(rivalry)))
        outbid = sigmoid(networks_of(self.settings).win.forward(self.win, np.hstack([rivals, everywhere])[None]))
        return fewer_than(cores, outbid.reshape(standing.shape[:-1]))


def _mean(values: FloatArray) -> FloatArray:
    """Return the mean over members [J, ...], added in their order: the same bits on every machine."""
    total: FloatArray = values[0].copy()
    for one in values[1:]:
        total += one
    total /= len(values)
    return total


def random_offer(observation: Observation, rng: Generator, payments: Payments = "plan") -> Offer:
    """Return random offers, to explore: clients in random order, half of them at a random price level.

    Half of the time the budget is filled, stopping at the first client that does not fit; otherwise only a random part
    of those clients is offered.
    """
    prices = price_levels(observation, ActiveRivals.of(observation).bids, far=payments == "far")
    level = rng.integers(prices.shape[1], size=len(prices)) * (rng.random(len(prices)) < 0.5)
    paid = prices[:, 0] if payments == "bid" else prices[np.arange(len(prices)), level]
    order, budget = rng.permutation(observation.clients), observation.budget
    offer = fill_budget(order, paid, budget, stop_at_misfit=True, available=observation.available)
    if len(offer.clients) > 1 and rng.random() < 0.5:
        kept = int(rng.integers(1, len(offer.clients)))
        return Offer(offer.clients[:kept], offer.payments[:kept])
    return offer


class Player(Policy):
    """Plays the networks of an agent, which remembers the run if it was trained for any market."""

    def __init__(self, context: PolicyContext, brain: Brain) -> None:
        super().__init__(context)
        self._brain, self._memory = brain, RunMemory(known=knowledge(context.curve))

    def act(self, observation: Observation) -> Offer:
        return self._brain.decide(observation, self._memory)

    def reasons(self, observation: Observation) -> Reasons:
        return self._brain.reasons(observation, self._memory)

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        self.remember(observation, offer, feedback.won)

    def remember(self, observation: Observation, offer: Offer, won: BoolArray) -> None:
        """Remember which offers of a round won [k], if the agent ``remembers`` at all."""
        if self.remembers:
            self._memory = self._memory.after(observation, offer, won)

    @property
    def remembers(self) -> bool:
        return self._brain.settings.context

    @property
    def draws_lots(self) -> bool:
        return self._brain.settings.lots

    def state(self) -> dict[str, AnyArray]:
        return {"memory": self._memory.sums}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._memory = replace(self._memory, sums=np.asarray(state["memory"], dtype=np.float64))


class Mahdrl(Player):
    """The learned policy that comes with flmarket, or one that you trained yourself."""

    summary = "learned: one agent for any market, which learns payments, too (MAHDRL, improved)"

    def __init__(
        self,
        context: PolicyContext,
        *,
        checkpoint: str | None = None,  # file of ``flmarket train``; if not given, the agent that comes with flmarket
        # ``plan`` offers more than the bid where that promises more, ``far`` also much more where cores are few, and
        # ``bid`` never more; if not given, the agent plays as it was trained
        payments: Payments | None = None,
        # whether it sees the learning curve that was fitted to its data set, if it was trained to look at one;
        # without, it plays as if none had been fitted
        curve: bool = True,
    ) -> None:
        if payments not in ("plan", "far", "bid", None):
            raise ValueError(f'payments must be "plan", "far" or "bid", not {payments!r}')
        if curve is not True and curve is not False:
            raise ValueError(f"curve must be true or false, not {curve!r}")
        known = context if curve else replace(context, curve=None)
        super().__init__(known, _load_brain(checkpoint, context.service, payments))

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:
        return agent_files.digest(checkpoint, NAME)


class MahdrlSingle(Mahdrl):
    """The agent that was trained in the paper's market alone."""

    summary = "learned in the market of `paper` alone, on images; what `mahdrl` was before it could play any market"

    def __init__(self, context: PolicyContext, *, payments: Payments | None = None) -> None:
        super().__init__(context, checkpoint=str(agent_files.shipped(SINGLE)), payments=payments)

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:  # noqa: ARG003 - there is one agent
        return agent_files.digest(None, SINGLE)


def _shapes(settings: MahdrlSettings) -> Mapping[str, tuple[int, int]]:
    of, members = networks_of(settings), settings.members
    return {"quality": (members, of.quality.parameters), "count": (members, of.count.parameters)} | {
        "win": (1, of.win.parameters)
    }


def _load_brain(checkpoint: str | None, service: str, payments: Payments | None) -> Brain:
    settings, networks = agent_files.load(checkpoint, NAME, service, MahdrlSettings, _shapes)
    return Brain(**networks, settings=settings if payments is None else replace(settings, payments=payments))
