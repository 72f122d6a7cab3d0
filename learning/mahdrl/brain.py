"""What `mahdrl` has learned, and how it decides with it: NumPy only, so that a market needs no torch to play it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.random import Generator

from des.records import Observation, Offer
from fl.arrays import Float32Array, FloatArray
from fl.elementary import sigmoid
from learning.checks import require_finite
from learning.mahdrl.features import CLIENT_FEATURES, client_features, elapsed, means
from learning.mahdrl.networks import Mlp
from learning.mahdrl.planning import CountValue, plan, price_levels
from learning.mahdrl.reasons import Reasons
from learning.mahdrl.rivalry import RIVAL_FEATURES, Rivals, features, fewer_than, rivals_kept
from learning.selection import fill_budget

Payments = Literal["plan", "bid"]

QUALITY = Mlp((CLIENT_FEATURES, 64, 32, 1))
"""q: what a client adds to the mean quality of its set. The same network for every client."""

COUNT = Mlp((2, 16, 3))
"""kappa's three coefficients, given the time and the budget: the best number early on may not be the best later."""

WIN = Mlp((RIVAL_FEATURES, 32, 1))
"""Logit of the chance that a rival outbids an offer."""


@dataclass(frozen=True, slots=True)
class Design:
    """What an agent sees and may do. Each departs from Algorithm 1, and can be switched off to see what it is worth.

    Attributes:
        payments: ``plan`` overbids where that promises more; ``bid`` never does.
        standardise: DQI and bids are seen relative to the round's other clients.
        schedule: sees how much of the run is over: what is best early may not be best late.
        budget: sees how many mean bids its budget is. Only for trainings with several budgets: where there is just one,
            what an agent learns about budgets is noise, and harms it under another budget.
        count: values the number of clients served, besides who they are.
        stop: may stop before the budget is used up.
    """

    payments: Payments = "plan"
    standardise: bool = True
    schedule: bool = True
    budget: bool = False
    count: bool = True
    stop: bool = True

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the design in a training's settings.

        Raises:
            ValueError: one of them is missing or invalid.
        """
        chosen: dict[str, Any] = {one.name: settings.get(one.name) for one in fields(cls)}
        design = cls(**chosen)
        if design.payments not in ("plan", "bid"):
            raise ValueError(f'payments must be "plan" or "bid", not {design.payments!r}')
        del chosen["payments"]
        for name, value in chosen.items():
            if value not in (True, False):
                raise ValueError(f"{name} must be true or false, not {value!r}")
        return design

    def see(self, observation: Observation) -> Float32Array:
        """Return the features of all clients, [C, 4]."""
        return client_features(observation, standardise=self.standardise, schedule=self.schedule, budget=self.budget)

    def situation(self, observation: Observation) -> Float32Array:
        """Return what the value of a number of clients depends on, [2]: n / N and what the budget can buy."""
        time = elapsed(observation) if self.schedule else 0.0
        return np.array([time, means(observation) if self.budget else 0.0], dtype=np.float32)


DESIGN = Design()
"""The design of the agent that comes with flmarket."""


@dataclass(frozen=True, slots=True)
class Brain:
    """The networks of A agents, as NumPy arrays [A, P]."""

    quality: Float32Array
    count: Float32Array
    win: Float32Array
    design: Design = DESIGN

    @classmethod
    def initial(cls, rng: Generator, agents: int, design: Design = DESIGN) -> Self:
        """Draw the networks of agents that have learned nothing: to them, no number of clients is better than another.

        Args:
            rng: draws the networks.
            agents: A.
            design: what the agents see and may do.
        """
        quality, count, win = (network.initial(rng, agents) for network in (QUALITY, COUNT, WIN))
        count[:, -COUNT.sizes[-1] :] = 0.0
        return cls(quality, 0.1 * count, win, design)

    @classmethod
    def shapes(cls, agents: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each tensor, by name."""
        networks = {"quality": QUALITY, "count": COUNT, "win": WIN}
        return {name: (agents, network.parameters) for name, network in networks.items()}

    def tensors(self) -> dict[str, Float32Array]:
        """Return the networks by name: what a trained agent needs to play."""
        return {"quality": self.quality, "count": self.count, "win": self.win}

    def agent(self, index: int) -> "Brain":
        """Return one agent's networks, as views [1, P]."""
        one = slice(index, index + 1)
        return Brain(self.quality[one], self.count[one], self.win[one], self.design)

    def q(self, observation: Observation) -> Any:
        """Return [C] what each client adds to the quality of a set, to the first agent."""
        return QUALITY.forward(self.quality, self.design.see(observation)[None])[0, :, 0]

    def kappa(self, observation: Observation) -> CountValue:
        """Return what the number of served clients is worth in this round."""
        if not self.design.count:
            return CountValue(0.0, 0.0, 0.0)
        return CountValue(*COUNT.forward(self.count, self.design.situation(observation)[None, None])[0, 0].tolist())

    def chances(self, standing: FloatArray, cores: int) -> Any:
        """Return the probability [...] that an offer is served, for the standing of its rivals [..., R, 2]."""
        seen = features(standing, np).astype(np.float32).reshape(1, -1, RIVAL_FEATURES)
        outbid = sigmoid(WIN.forward(self.win, seen))
        return fewer_than(cores, outbid.reshape(standing.shape[:-1]))

    def decide(self, observation: Observation) -> Offer:
        """Return the offers that the critic thinks best (eq. 7).

        Raises:
            ObservationError: the observation holds values that are not finite.
        """
        prices, chance = self._prices(observation)
        return self._plan(observation, self.q(observation), prices, chance)

    def reasons(self, observation: Observation) -> Reasons:
        """Return what ``decide`` returns, and what it follows from. Errors as there."""
        prices, chance = self._prices(observation)
        q = self.q(observation)
        offer = self._plan(observation, q, prices, chance)
        level = (prices[offer.clients] == offer.payments[:, None]).argmax(axis=1)
        return Reasons(offer, np.asarray(q, np.float64), chance[:, 0], chance[offer.clients, level])

    def _prices(self, observation: Observation) -> tuple[FloatArray, Any]:
        """Return prices worth considering, and the chance to be served at each, both [C, L]."""
        require_finite(observation)
        rivals, cores = Rivals.of(observation), observation.cores
        prices = price_levels(observation, rivals.bids)
        if self.design.payments == "bid":
            prices = prices[:, :1]
        if len(rivals) < cores:
            return prices, np.ones(prices.shape)
        return prices, self.chances(rivals.standing(prices, rivals_kept(len(observation.services), cores)), cores)

    def _plan(self, observation: Observation, q: Any, prices: FloatArray, chance: Any) -> Offer:
        kappa, available = self.kappa(observation), observation.available
        return plan(q, kappa, prices, chance, observation.budget, available=available, stop=self.design.stop)


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
