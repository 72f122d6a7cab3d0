"""A policy with a random taste in clients, from whose runs surrogates are calibrated. Not registered: no service's."""

from typing import ClassVar

import numpy as np

from des.observation import Observation, Offer
from fl.arithmetic.streams import stream
from learning.client_selection.scaling import standardised
from learning.client_selection.selection import fill_budget
from learning.policy import Policy, PolicyContext

_RECIPES: tuple[tuple[float, float, float], ...] = (
    (0.0, 0.0, 0.0),  # random
    (3.0, -1.0, 0.0),  # much data
    (1.0, -3.0, 0.0),  # even labels
    (0.0, 0.0, -3.0),  # cheap
    (-2.0, 1.0, 0.0),  # little data and uneven labels: no sensible policy; it bounds the curve from below
)
"""Weights of data size, EMD and bid; other runs draw theirs."""


class Explorer(Policy):
    """Ranks clients by weighted data size, EMD, bid and noise; weights, budget and number of clients vary by run."""

    summary = "random tastes, for calibration"
    privileged: ClassVar[bool] = True

    def __init__(self, context: PolicyContext, seed: int) -> None:
        """Draw the taste of one run from (seed, service). Of six seeds in a row, five use the weights of a recipe."""
        super().__init__(context)
        rng = stream(seed, "explore", context.service)
        kind = seed % (len(_RECIPES) + 1)
        drawn = rng.normal(size=3) * rng.choice([1.0, 3.0])
        self._weights = np.array(_RECIPES[kind]) if kind < len(_RECIPES) else drawn
        self._noise = float(rng.choice([0.1, 0.5, 1.5]))
        self._least, self._most = np.sort(rng.uniform(0.2, 1.0, 2))
        if rng.random() < 0.5:
            self._least = self._most = 1.0
        self._clients = int(rng.choice([2, 3, 4, 6, context.clients, context.clients, context.clients]))

    def act(self, observation: Observation) -> Offer:
        """Offer their bids to the clients of its taste, within the part of the budget that it draws for this round."""
        hidden = observation.privileged
        assert hidden is not None  # noqa: S101 - the market gives it to every policy that declares it
        rng = observation.rng()
        keys = np.stack([standardised(key) for key in (hidden.data_size, hidden.emd, observation.own_bids)])
        score = self._weights @ keys + self._noise * rng.standard_normal(observation.clients)
        budget = observation.budget * rng.uniform(self._least, self._most)
        offer = fill_budget(np.argsort(-score), observation.own_bids, budget, available=observation.available)
        return Offer(offer.clients[: self._clients], offer.payments[: self._clients])
