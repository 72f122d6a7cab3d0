"""What `mahdrl` has learned, and how it decides with it: NumPy only, so that a market needs no torch to play it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from des.records import Observation, Offer
from fl.arrays import Float32Array, FloatArray
from fl.elementary import sigmoid
from learning.checks import require_finite
from learning.mahdrl.context import CONTEXT, FOR_CHANCES, Memory, context
from learning.mahdrl.features import CLIENT_FEATURES, client_features, elapsed, means
from learning.mahdrl.knowledge import NUMBERS
from learning.mahdrl.networks import Mlp
from learning.mahdrl.planning import CountValue, plan, price_levels
from learning.mahdrl.ranges import Count
from learning.mahdrl.reasons import Reasons
from learning.mahdrl.rivalry import RIVAL_FEATURES, Rivals, features, fewer_than, rivals_kept
from learning.selection import fill_budget

Payments = Literal["plan", "bid"]

QUALITY = Mlp((CLIENT_FEATURES, 64, 32, 1))
"""q: what a client adds to the mean quality of its set. The same network for every client."""

COUNT = Mlp((2, 16, 3))
"""kappa's three coefficients, given the time and the budget: the best number early on may not be the best later."""

WIN = Mlp((RIVAL_FEATURES, 32, 1))  # logit of the chance that a rival outbids an offer


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks of a design."""

    quality: Mlp
    count: Mlp
    win: Mlp


PLAIN = Networks(QUALITY, COUNT, WIN)  # of an agent for one market

WIDE = Networks(
    Mlp((CLIENT_FEATURES + len(CONTEXT), 64, 32, 1)),
    Mlp((2 + len(CONTEXT), 32, 3)),
    Mlp((RIVAL_FEATURES + len(FOR_CHANCES), 32, 1)),
)
"""Of an agent that sees the context, for any market."""

KNOWING = Networks(
    Mlp((CLIENT_FEATURES + len(CONTEXT) + len(NUMBERS), 64, 32, 1)),
    Mlp((2 + len(CONTEXT) + len(NUMBERS), 32, 3)),
    WIDE.win,
)
"""Of an agent that also knows how its data set is learned."""


@dataclass(frozen=True, slots=True)
class Design:
    """What an agent sees and may do. Each departs from Algorithm 1, and can be switched off to see what it is worth."""

    payments: Payments = "plan"  # ``plan`` overbids where that promises more; ``bid`` never does
    standardise: bool = True  # DQI and bids are seen relative to the round's other clients
    schedule: bool = True  # sees how much of the run is over: what is best early may not be best late
    # sees how many mean bids its budget is. Only for trainings with several budgets: where there is just one, what an
    # agent learns about budgets is noise, and harms it under another budget.
    budget: bool = False
    count: bool = True  # values the number of clients served, besides who they are
    stop: bool = True  # may stop before the budget is used up
    # sees which market this is, and what came of its offers so far (``context``), for trainings in many markets
    context: bool = False
    curve: bool = False  # besides the context, knows how its data set is learned, where anybody does (``knowledge``)
    # among clients that are worth the same, a random draw decides; otherwise the one with the lower number comes first,
    # and services that decide alike all want the same ones
    lots: bool = False
    # how many critics an agent has, each of which learns from batches of its own. It decides by their mean: where
    # training has said little, they differ, and the mean errs less than they do on average.
    members: Count = 1

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the design in a training's settings; those of earlier versions do not name all of them."""
        chosen: dict[str, Any] = {one.name: settings.get(one.name) for one in fields(cls)}
        chosen |= {name: settings.get(name, False) for name in ("context", "curve", "lots")}
        chosen["members"] = settings.get("members", 1)
        design = cls(**chosen)
        if design.payments not in ("plan", "bid"):
            raise ValueError(f'payments must be "plan" or "bid", not {design.payments!r}')
        if not isinstance(design.members, int) or isinstance(design.members, bool) or design.members < 1:
            raise ValueError(f"members must be a positive integer, not {design.members!r}")
        del chosen["payments"], chosen["members"]
        for name, value in chosen.items():
            if value is not True and value is not False:  # nor 1, which equals True
                raise ValueError(f"{name} must be true or false, not {value!r}")
        if design.curve and not design.context:
            raise ValueError("curve is part of what an agent sees with context")
        return design

    @property
    def networks(self) -> Networks:
        if self.context:
            return KNOWING if self.curve else WIDE
        return PLAIN

    def see(self, observation: Observation, memory: Memory) -> "Seen":
        """Return what the networks see."""
        clients = client_features(observation, standardise=self.standardise, schedule=self.schedule, budget=self.budget)
        time = elapsed(observation) if self.schedule else 0.0
        situation = np.array([time, means(observation) if self.budget else 0.0], dtype=np.float32)
        if not self.context:
            return Seen(clients, situation, np.zeros(0, dtype=np.float32))
        market = context(observation, memory)
        known = np.concatenate([market, memory.known]) if self.curve else market
        everywhere = np.broadcast_to(known, (len(clients), len(known)))
        return Seen(np.hstack([clients, everywhere]), np.concatenate([situation, known]), market[list(FOR_CHANCES)])


class Seen(NamedTuple):
    """What the networks see of an observation."""

    clients: Float32Array  # [C, features] of each client
    # [inputs] what the value of a number of clients depends on: n / N, what the budget can buy, and the context if it
    # is seen
    situation: Float32Array
    rivalry: Float32Array  # [inputs] what is seen beside each rival: a part of the context, or nothing


DESIGN = Design()  # the design of an agent for one market

START = Memory()  # before the first round


@dataclass(frozen=True, slots=True)
class Brain:
    """The networks of A agents, as NumPy arrays."""

    quality: Float32Array  # [A * J, P] of the J critics of each agent, agent by agent
    count: Float32Array  # [A * J, P] of the same
    win: Float32Array  # [A, P]
    design: Design = DESIGN  # what the agents see and may do

    @classmethod
    def initial(cls, rng: Generator, agents: int, design: Design = DESIGN) -> Self:
        """Draw the networks of untrained agents: to them, no number of clients is better than another."""
        networks, critics = design.networks, agents * design.members
        quality, count = (one.initial(rng, critics) for one in (networks.quality, networks.count))
        win = networks.win.initial(rng, agents)
        count[:, -networks.count.sizes[-1] :] = 0.0
        return cls(quality, 0.1 * count, win, design)

    @classmethod
    def shapes(cls, agents: int, design: Design = DESIGN) -> dict[str, tuple[int, ...]]:
        """Return the shape of each tensor, by name."""
        networks, critics = design.networks, agents * design.members
        return {
            "quality": (critics, networks.quality.parameters),
            "count": (critics, networks.count.parameters),
            "win": (agents, networks.win.parameters),
        }

    def tensors(self) -> dict[str, Float32Array]:
        """Return the networks by name: what a trained agent needs to play."""
        return {"quality": self.quality, "count": self.count, "win": self.win}

    def agent(self, index: int) -> "Brain":
        """Return one agent's networks, as views."""
        own = slice(index * self.design.members, (index + 1) * self.design.members)
        return Brain(self.quality[own], self.count[own], self.win[index : index + 1], self.design)

    def member(self, index: int) -> "Brain":
        """Return what the first agent would be with one of its critics alone."""
        one = slice(index, index + 1)
        return Brain(self.quality[one], self.count[one], self.win[:1], replace(self.design, members=1))

    def chances(
        self,
        standing: FloatArray,  # [..., R, 2] of its rivals
        cores: int,  # K
        rivalry: Float32Array,  # see ``Seen``
    ) -> Any:
        """Return the probability [...] that an offer is served."""
        seen = features(standing, np).astype(np.float32).reshape(-1, RIVAL_FEATURES)
        beside = np.broadcast_to(rivalry, (len(seen), len(rivalry)))
        outbid = sigmoid(self.design.networks.win.forward(self.win, np.hstack([seen, beside])[None]))
        return fewer_than(cores, outbid.reshape(standing.shape[:-1]))

    def decide(self, observation: Observation, memory: Memory = START) -> Offer:
        """Return the offers that the critic thinks best (eq. 7)."""
        return self._decided(observation, memory)[0]

    def reasons(self, observation: Observation, memory: Memory = START) -> Reasons:
        """Return what ``decide`` returns, and what it follows from. Arguments and errors as there."""
        offer, q, prices, chance = self._decided(observation, memory)
        level = (prices[offer.clients] == offer.payments[:, None]).argmax(axis=1)
        return Reasons(offer, np.asarray(q, np.float64), chance[:, 0], chance[offer.clients, level])

    def _decided(self, observation: Observation, memory: Memory) -> tuple[Offer, Any, FloatArray, Any]:
        """Return the offer, q [C], the prices considered [C, L], and the chance to be served at each."""
        require_finite(observation)
        design = self.design
        seen = design.see(observation, memory)
        prices, chance = self._prices(observation, seen.rivalry)
        q = _mean(design.networks.quality.forward(self.quality, seen.clients[None]))[:, 0]
        kappa = CountValue(0.0, 0.0, 0.0)
        if design.count:
            kappa = CountValue(
                *_mean(design.networks.count.forward(self.count, seen.situation[None, None]))[0].tolist()
            )
        available, budget = observation.available, observation.budget
        turns = observation.rng().permutation(observation.clients) if design.lots else None
        offer = plan(q, kappa, prices, chance, budget, available=available, turns=turns, stop=design.stop)
        return offer, q, prices, chance

    def _prices(self, observation: Observation, rivalry: Float32Array) -> tuple[FloatArray, Any]:
        """Return prices worth considering, and the chance to be served at each, both [C, L]."""
        rivals, cores = Rivals.of(observation), observation.cores
        prices = price_levels(observation, rivals.bids)
        if self.design.payments == "bid":
            prices = prices[:, :1]
        if len(rivals) < cores:
            return prices, np.ones(prices.shape)
        standing = rivals.standing(prices, rivals_kept(len(observation.services), cores))
        return prices, self.chances(standing, cores, rivalry)


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
    require_finite(observation)
    prices = price_levels(observation, Rivals.of(observation).bids)
    level = rng.integers(prices.shape[1], size=len(prices)) * (rng.random(len(prices)) < 0.5)
    paid = prices[:, 0] if payments == "bid" else prices[np.arange(len(prices)), level]
    order, budget = rng.permutation(observation.clients), observation.budget
    offer = fill_budget(order, paid, budget, stop_at_misfit=True, available=observation.available)
    if len(offer.clients) > 1 and rng.random() < 0.5:
        kept = int(rng.integers(1, len(offer.clients)))
        return Offer(offer.clients[:kept], offer.payments[:kept])
    return offer
