"""Gymnasium spaces of an RL agent: a service's observation and action.

``DictCodec`` keeps the parts apart, by name; ``FlatCodec`` makes one Box of each, for learners that take nothing else.
All bounds come from the market itself, and every observation lies within them. Needs the extra ``rl``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from gymnasium import spaces

from des.market import Market
from des.money import MICRO
from fl.arrays import BoolArray, Float32Array, FloatArray
from learning.environments.projection import ActionError, checked

Parts = Mapping[str, FloatArray]  # an observation's parts by name, before they are encoded; see ``bounds``


class Codec(Protocol):
    """Encodes a service's observation for its agent, and decodes the agent's action."""

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]

    def encode(self, parts: Parts) -> Any:
        """Return the observation, an element of ``observation_space``."""
        ...

    def decode(self, action: Any) -> tuple[BoolArray, FloatArray]:
        """Return the clients wanted [C] and their payments [C], in units of their bids."""
        ...


def bounds(market: Market, service: int) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the lowest and highest value of each part of a service's observation.

    * ``dqi`` [C]: each client's data quality indicator for this service, as far as the market discloses it.
    * ``bids`` [M, C]: every client's bids, money. The service's own row comes first, then its rivals' in the scenario's
      order. A row is zero once its service has left; the rivals' are always zero where bids are not public.
    * ``available`` [C]: 1 for each client that can be selected, 0 for each that is offline.
    * ``budget`` [1]: B_m, money.
    * ``cores`` [1]: K.
    * ``accuracy`` [1]: the accuracy of the service's own global model.
    * ``progress`` [1]: the part of the N rounds that is over.
    * ``total_left`` [1]: what is left of the service's budget for the whole run, money. Only where it has one.
    """
    clients = market.population.spec.count
    low, high = market.population.seen_range
    ahead = [market.schedule.at(round_) for round_ in market.schedule.turning_points]  # interventions count
    budget = max(conditions.budgets[market.services[service].name] for conditions in ahead)
    highest = market.population.bid_range[1] / MICRO
    zero, one = np.zeros(1), np.ones(1)
    top = np.repeat(own_first(highest, service)[:, None], clients, axis=1)
    total = market.services[service].total_budget
    whole = {} if total is None else {"total_left": (zero, np.array([total / MICRO]))}
    return {
        "dqi": (np.full(clients, low[service]), np.full(clients, high[service])),
        "bids": (np.zeros_like(top), top),
        "available": (np.zeros(clients), np.ones(clients)),
        "budget": (zero, np.array([budget / MICRO])),
        "cores": (zero, np.array([max(conditions.cores for conditions in ahead)], dtype=np.float64)),
        "accuracy": (zero, one),
        "progress": (zero, one),
        **whole,
    }


def own_first(rows: FloatArray, service: int) -> FloatArray:
    """Return rows [M, ...] with a service's own row first, the others in their order."""
    return np.concatenate([rows[service : service + 1], rows[:service], rows[service + 1 :]])


@dataclass(frozen=True, slots=True)
class Scale:
    """Scales values from bounds to [0, 1], in single precision; 0 where the bounds coincide."""

    low: FloatArray
    width: FloatArray

    @classmethod
    def between(cls, low: FloatArray, high: FloatArray) -> Self:
        """Return the scale of values between these bounds."""
        return cls(low, np.where(high > low, high - low, 1.0))

    def __call__(self, values: FloatArray) -> Float32Array:
        scaled: Float32Array = ((values - self.low) / self.width).astype(np.float32)
        return scaled


class DictCodec:
    """Observation: a Dict of Boxes. Action: Dict(select=MultiBinary[C], payment=Box[C]), in units of the bid."""

    def __init__(self, market: Market, service: int, payment_limit: float) -> None:
        self._clients = market.population.spec.count
        self._limit = payment_limit
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            {
                name: spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
                for name, (low, high) in bounds(market, service).items()
            }
        )
        self.action_space: spaces.Space[Any] = spaces.Dict(
            {
                "select": spaces.MultiBinary(self._clients),
                "payment": spaces.Box(1.0, payment_limit, (self._clients,), np.float32),
            }
        )

    def encode(self, parts: Parts) -> dict[str, Float32Array]:
        """Return the parts in single precision. Rounding is monotone, so they stay within the rounded bounds."""
        return {name: values.astype(np.float32) for name, values in parts.items()}

    def decode(self, action: Any) -> tuple[BoolArray, FloatArray]:
        """Return the clients wanted and their payments."""
        if not isinstance(action, Mapping) or set(action) != {"select", "payment"}:
            raise ActionError("an action must hold 'select' and 'payment', and nothing else")
        return checked(action["select"], action["payment"], self._clients, self._limit)


class FlatCodec:
    """Observation: Box [2C + MC + 4], or one more, in [0, 1]. Action: Box [2C] in [-1, 1].

    The observation's parts follow each other in the order of ``bounds``, each scaled from its bounds to [0, 1] (0 where
    the bounds coincide). The action's first C values select the clients for whom they are positive; the last C are
    payments, -1 for the bid and 1 for ``payment_limit`` bids.
    """

    def __init__(self, market: Market, service: int, payment_limit: float) -> None:
        self._clients = market.population.spec.count
        self._limit = payment_limit
        limits = bounds(market, service).values()
        low, high = (np.concatenate([bound.ravel() for bound in both]) for both in zip(*limits, strict=True))
        self._scale = Scale.between(low, high)
        self.observation_space: spaces.Space[Any] = spaces.Box(0.0, 1.0, low.shape, np.float32)
        self.action_space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (2 * self._clients,), np.float32)

    def encode(self, parts: Parts) -> Float32Array:
        """Return the parts as one scaled vector."""
        return self._scale(np.concatenate([part.ravel() for part in parts.values()]))

    def decode(self, action: Any) -> tuple[BoolArray, FloatArray]:
        """Return the clients wanted and their payments."""
        values = np.asarray(action, dtype=np.float64)
        if values.shape != (2 * self._clients,):
            raise ActionError(f"an action must hold {2 * self._clients} values, not have shape {values.shape}")
        if not (np.abs(values) <= 1).all():
            raise ActionError("an action's values must lie between -1 and 1")
        select, payment = values[: self._clients] > 0, 1 + (values[self._clients :] + 1) / 2 * (self._limit - 1)
        return checked(select, np.minimum(payment, self._limit), self._clients, self._limit)
