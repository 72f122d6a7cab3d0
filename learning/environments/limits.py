"""The limits of environments: discount factors and payments out of range, mechanisms that need more than bids."""

from des.market import Market
from des.mechanism import Mechanism


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
