"""Seats: policies by name for the services of a market."""

from collections.abc import Callable, Mapping
from typing import Any

from des.market import Market
from des.money import MICRO
from learning.policy import Policy, PolicyContext, create

MarketFactory = Callable[[int], Market]  # from a seed to a market at its start. The same seed gives the same market.


def context(market: Market, service: str) -> PolicyContext:
    """Return what the policy of a service may know of a market before its first round."""
    spec = next(spec for spec in market.services if spec.name == service)
    clients = market.population.spec
    return PolicyContext(
        service=service,
        services=len(market.services),
        clients=clients.count,
        cores=clients.cores,
        rounds=market.rounds,
        budget=spec.budget / MICRO,
        target_accuracy=spec.target_accuracy,
        reward_base=spec.reward_base,
        curve=spec.curve,
    )


def seat(
    # between rounds. From now on its reports carry the policies' names, and privileged policies see more.
    market: Market,
    names: Mapping[str, str],  # the policies' names, by service
    options: Mapping[str, Mapping[str, Any]] | None = None,  # each policy's options, by service
) -> dict[str, Policy]:
    """Seat policies in a market, and return them by service."""
    seated = {}
    for service, name in names.items():
        market.seat(service, name, privileged=False)  # refuses a service that is not there
        policy = seated[service] = create(name, context(market, service), (options or {}).get(service))
        market.seat(service, name, privileged=policy.privileged)
    return seated
