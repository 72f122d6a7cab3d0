"""Codecs: what an RL agent of a service observes and does, as arrays. All environments, and policies, scale by these.

``DictCodec`` keeps the parts apart, by name; ``FlatCodec`` makes one Box of each, for learners that take nothing else.
All bounds come from the market itself, and in an environment every observation lies within them. Gymnasium is needed
for the two spaces alone (extra ``rl``).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from des.money import to_micro
from des.observation import Observation, Offer
from fl.arrays import BoolArray, Float32Array, FloatArray
from flmarket.core.installation import require_extra
from learning.environments.actions import ActionError, project, read_action
from learning.policy import Bounds
from learning.seats import observed_parts


class Codec(ABC):
    """Encodes what a service observes for its agent, and decodes the agent's actions. ``flmarket.spaces`` makes one.

    Attributes:
        bounds: the lowest and the highest value of each part of an observation; see ``learning.seats.bounds``.
        payment_limit: the highest payment, in units of the bid.
        clients: C.
        observation_space: of what the agent sees, for Gymnasium (extra ``rl``); always the same object.
        action_space: of its actions, likewise.
    """

    observation_space: Any
    action_space: Any

    def __init__(self, bounds: Bounds, payment_limit: float) -> None:
        """Keep the bounds of a market, and the highest payment, which is above 1."""
        self.bounds, self.payment_limit = bounds, payment_limit
        self.clients = len(bounds["dqi"][0])

    @abstractmethod
    def encode(self, observation: Observation) -> Any:
        """Return what the agent sees of an observation, in single precision."""

    def decode(self, action: Any, observation: Observation) -> Offer:
        """Return the offer that an action makes, cut to the budget (``learning.environments.actions``).

        Raises:
            ActionError: the action is not in its space.
        """
        return self.decode_and_count(action, observation)[0]

    def decode_and_count(self, action: Any, observation: Observation) -> tuple[Offer, int]:
        """Return the offer that an action makes, and how many selected clients it leaves out. Errors as in ``decode``.

        Those are offline ones, and those that did not fit into the budget.
        """
        select, payment = self._read(action)
        offer = project(select & observation.available, payment, observation.own_bids, observation.budget)
        return offer, int(select.sum()) - len(offer.clients)

    def encode_offer(self, offer: Offer, observation: Observation) -> Any:
        """Return the action from which ``decode`` makes an offer, to learn from policies by imitation.

        Payments are in double precision, and ``decode`` returns the same to the micro-unit; its clients stand in the
        order of their payments in units of the bid. Single precision, which is that of the space, is off by up to a
        ten-millionth of ``payment_limit`` bids.

        Raises:
            ValueError: no action makes this offer: a payment is above ``payment_limit`` bids, or above a bid of 0, or
                all together are over the budget, which some mechanisms allow.
        """
        clients = np.asarray(offer.clients, np.int64)
        bids, paid = to_micro(observation.own_bids)[clients], to_micro(np.asarray(offer.payments, np.float64))
        most = self.payment_limit * bids
        if (paid > most).any():
            client = int(clients[(paid > most).argmax()])
            raise ValueError(f"client {client} is offered more than {self.payment_limit} bids; raise payment_limit")
        if paid.sum() > to_micro(observation.budget):
            raise ValueError("the payments are together over the budget, which no action can be")
        select, payment = np.zeros(self.clients, np.bool_), np.ones(self.clients)
        select[clients] = True
        payment[clients] = np.maximum(paid, 1) / np.maximum(bids, 1)  # a bid of 0 is paid 0, in any units
        return self._write(select, payment)

    def of_market(self, bounds: Bounds) -> Self:
        """Return the same codec for a market with other bounds."""
        return type(self)(bounds, self.payment_limit)

    @abstractmethod
    def _read(self, action: Any) -> tuple[BoolArray, FloatArray]:
        """Return the clients wanted [C] and their payments [C], in units of their bids."""

    @abstractmethod
    def _write(self, select: BoolArray, payment: FloatArray) -> Any:
        """Return the action that ``_read`` reads."""


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
        """Return values in single precision."""
        scaled: Float32Array = ((values - self.low) / self.width).astype(np.float32)
        return scaled


class DictCodec(Codec):
    """Observation: a Dict of Boxes. Action: Dict(select=MultiBinary[C], payment=Box[C]), in units of the bid."""

    @cached_property
    def observation_space(self) -> Any:
        """A Dict of a Box for each part."""
        spaces = _gymnasium()
        return spaces.Dict(
            {
                name: spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
                for name, (low, high) in self.bounds.items()
            }
        )

    @cached_property
    def action_space(self) -> Any:
        """A Dict of ``select`` and ``payment``."""
        spaces = _gymnasium()
        return spaces.Dict(
            {
                "select": spaces.MultiBinary(self.clients),
                "payment": spaces.Box(1.0, self.payment_limit, (self.clients,), np.float32),
            }
        )

    def encode(self, observation: Observation) -> dict[str, Float32Array]:
        """Return the parts in single precision. Rounding is monotone, so they stay within the rounded bounds."""
        return {name: values.astype(np.float32) for name, values in observed_parts(observation).items()}

    def _read(self, action: Any) -> tuple[BoolArray, FloatArray]:
        if not isinstance(action, Mapping) or set(action) != {"select", "payment"}:
            raise ActionError("an action must hold 'select' and 'payment', and nothing else")
        return read_action(action["select"], action["payment"], self.clients, self.payment_limit)

    def _write(self, select: BoolArray, payment: FloatArray) -> Any:
        return {"select": select.astype(np.int8), "payment": payment}


class FlatCodec(Codec):
    """Observation: Box [2C + MC + 4], or one more, in [0, 1]. Action: Box [2C] in [-1, 1].

    The observation's parts follow each other in the order of ``learning.seats.bounds``, each scaled from its bounds to
    [0, 1] (0 where the bounds coincide). The action's first C values select the clients for whom they are positive; the
    last C are payments, -1 for the bid and 1 for ``payment_limit`` bids.
    """

    def __init__(self, bounds: Bounds, payment_limit: float) -> None:
        """Keep the bounds of a market, and the highest payment, which is above 1."""
        super().__init__(bounds, payment_limit)
        low, high = (np.concatenate([bound.ravel() for bound in both]) for both in zip(*bounds.values(), strict=True))
        self._scale = Scale.between(low, high)

    @cached_property
    def observation_space(self) -> Any:
        """A Box from 0 to 1."""
        return _gymnasium().Box(0.0, 1.0, self._scale.low.shape, np.float32)

    @cached_property
    def action_space(self) -> Any:
        """A Box from -1 to 1."""
        return _gymnasium().Box(-1.0, 1.0, (2 * self.clients,), np.float32)

    def encode(self, observation: Observation) -> Float32Array:
        """Return the parts as one scaled vector."""
        parts = observed_parts(observation)
        return self._scale(np.concatenate([parts[name].ravel() for name in self.bounds]))

    def _read(self, action: Any) -> tuple[BoolArray, FloatArray]:
        values = np.asarray(action, dtype=np.float64)
        if values.shape != (2 * self.clients,):
            raise ActionError(f"an action must hold {2 * self.clients} values, not have shape {values.shape}")
        if (wrong := np.flatnonzero(~(np.abs(values) <= 1))).size:
            raise ActionError(f"an action's values must lie between -1 and 1; value {wrong[0]} is {values[wrong[0]]:g}")
        payment = unit_payments(values[self.clients :], self.payment_limit)
        return read_action(values[: self.clients] > 0, payment, self.clients, self.payment_limit)

    def _write(self, select: BoolArray, payment: FloatArray) -> Any:
        return np.concatenate([np.where(select, 1.0, -1.0), 2 * (payment - 1) / (self.payment_limit - 1) - 1])


def unit_payments(values: FloatArray, payment_limit: float) -> FloatArray:
    """Return the payments, in units of the bid, for which a flat action's values stand."""
    return np.minimum(1 + (values + 1) / 2 * (payment_limit - 1), payment_limit)


def _gymnasium() -> Any:
    require_extra("rl", "a Gymnasium space", "Gymnasium", "gymnasium")
    from gymnasium import spaces

    return spaces
