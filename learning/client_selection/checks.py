"""Refusals: observations that cannot be acted on, and settings and markets that an environment cannot play."""

import numpy as np

from des.market import Market
from des.mechanisms.mechanism import Mechanism
from des.observation import Observation
from flmarket.core.errors import RunError


class ObservationError(RunError):
    """A service observes values that are not finite."""


def require_in_range(gamma: float, payment_limit: float) -> None:
    """Refuse a discount factor or a highest payment that no environment can have."""
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be in (0, 1], not {gamma}")
    if not 1 < payment_limit < float("inf"):
        raise ValueError(f"payment_limit must be a finite number above 1, not {payment_limit}")


def require_one_offer(market: Market) -> None:
    """Refuse a market whose rounds an environment cannot play: a service has one action, which may pay the bid."""
    mechanism = market.mechanism
    if reason := more_than_one_offer(mechanism):
        plays = "an environment plays one a round" if mechanism.steps > 1 else "the environments know bids only"
        raise ValueError(f"mechanism {type(mechanism).__name__} {reason}; {plays}")


def more_than_one_offer(mechanism: Mechanism) -> str:
    """Return what a mechanism does that one action a round, priced from the bids, cannot play; empty if nothing."""
    if mechanism.steps > 1:
        return f"takes offers in {mechanism.steps} steps"
    return "posts prices of its own" if type(mechanism).ask is not Mechanism.ask else ""


def require_finite(observation: Observation) -> None:
    """Refuse values that are not finite, before a policy decides on them or a network spreads them."""
    where = f"service {observation.service!r}, round {observation.round}"
    for name, values in (("dqi", observation.dqi), ("bids", observation.bids)):
        if not np.isfinite(values).all():
            client = int(np.argwhere(~np.isfinite(values))[0][-1])
            raise ObservationError(f"{where}: the observation's {name} of client {client} is not a finite number")
    for name, value in (("budget", observation.budget), ("accuracy", observation.accuracy)):
        if not np.isfinite(value):
            raise ObservationError(f"{where}: the observation's {name} is not a finite number")
