"""What `mahdrl` has learned, and how it decides with it: NumPy only, so that a market needs no torch to play it."""

from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.random import Generator

from des.records import Observation, Offer
from learning.mahdrl.features import (
    CLIENT_FEATURES,
    WIN_FEATURES,
    check,
    client_features,
    rival_bids,
    win_features,
)
from learning.mahdrl.networks import Floats, Mlp, sigmoid
from learning.mahdrl.planning import CountValue, plan, price_levels
from learning.selection import fill_budget

Payments = Literal["plan", "bid"]

QUALITY = Mlp((CLIENT_FEATURES, 64, 32, 1))
"""q: what a client adds to the mean quality of the set it is in. The same network for every client."""

COUNT = Mlp((1, 16, 3))
"""kappa's three coefficients at a time of the run: early on, another number of clients may be best than later."""

WIN = Mlp((WIN_FEATURES, 32, 1))
"""Logit of the chance that an offer at a price is served."""


@dataclass(frozen=True, slots=True)
class Brain:
    """The networks of A agents, as NumPy arrays [A, P]."""

    quality: Floats
    count: Floats
    win: Floats

    @classmethod
    def initial(cls, rng: Generator, agents: int) -> Self:
        """Draw the networks of agents that have learned nothing: no number of clients is better, no offer surer."""
        quality, count, win = (network.initial(rng, agents) for network in (QUALITY, COUNT, WIN))
        count[:, -COUNT.sizes[-1] :] = 0.0
        return cls(quality, 0.1 * count, win)

    @classmethod
    def shapes(cls, agents: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each tensor, by name."""
        sizes = (QUALITY.parameters, COUNT.parameters, WIN.parameters)
        return {field.name: (agents, size) for field, size in zip(fields(cls), sizes, strict=True)}

    def agent(self, index: int) -> "Brain":
        """Return one agent's networks, as views [1, P]."""
        one = slice(index, index + 1)
        return Brain(self.quality[one], self.count[one], self.win[one])

    def q(self, observation: Observation) -> Any:
        """Return [C] what each client adds to the quality of a set, of the first agent."""
        return QUALITY.forward(self.quality, client_features(observation)[None])[0, :, 0].astype(np.float64)

    def kappa(self, observation: Observation) -> CountValue:
        """Return what the number of served clients is worth in this round."""
        time = np.array([[[observation.round / observation.rounds]]], dtype=np.float32)
        return CountValue(*COUNT.forward(self.count, time)[0, 0].tolist())

    def chances(self, features: Floats) -> Any:
        """Return the probability that an offer is served, for features [..., 5]."""
        rows = features.reshape(1, -1, WIN_FEATURES)
        return sigmoid(WIN.forward(self.win, rows)).reshape(features.shape[:-1]).astype(np.float64)

    def decide(self, observation: Observation, payments: Payments = "plan") -> Offer:
        """Return the offers that the critic thinks best (eq. 7).

        Args:
            observation: of the service's round.
            payments: ``bid`` never offers more than the bid.

        Raises:
            ObservationError: the observation holds numbers that are none.
        """
        check(observation)
        rivals = rival_bids(observation)
        prices = price_levels(observation, rivals)
        if payments == "bid":
            prices = prices[:, :1]
        if len(rivals) < observation.cores:
            chance = np.ones(prices.shape)
        else:
            chance = self.chances(win_features(prices, observation.own_bids, rivals, observation.cores))
        return plan(
            self.q(observation), self.kappa(observation), prices, chance, observation.budget, observation.available
        )


def wander(observation: Observation, rng: Generator, payments: Payments = "plan") -> Offer:
    """Return random offers, to explore: clients in random order, half of them at a random price level.

    Half of the time the budget is filled, stopping at the first client that does not fit; else a random part of that.
    """
    check(observation)
    prices = price_levels(observation, rival_bids(observation))
    level = rng.integers(prices.shape[1], size=len(prices)) * (rng.random(len(prices)) < 0.5)
    paid = prices[:, 0] if payments == "bid" else prices[np.arange(len(prices)), level]
    order, budget = rng.permutation(observation.clients), observation.budget
    offer = fill_budget(order, paid, budget, stop_at_misfit=True, available=observation.available)
    if len(offer.clients) > 1 and rng.random() < 0.5:
        kept = int(rng.integers(1, len(offer.clients)))
        return Offer(offer.clients[:kept], offer.payments[:kept])
    return offer
