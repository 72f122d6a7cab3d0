"""Seats: policies by name for the services of a market, and what is known there before the first round."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from des.clients.data_tables import PopulationSpec
from des.clients.population import Population, public_ranges
from des.market import Market
from des.money import MICRO
from des.observation import Observation
from des.schedule import Schedule
from des.service import ServiceSpec
from fl.arrays import FloatArray
from fl.data.dqi import DQIParameters
from learning.policy import POLICIES, Bounds, DataRanges, Policy, PolicyContext

MarketFactory = Callable[[int], Market]  # from a seed to a market at its start. The same seed gives the same market.


def context(market: Market, service: str) -> PolicyContext:
    """Return what the policy of a service may know of a market before its first round."""
    m, spec = next((m, spec) for m, spec in enumerate(market.services) if spec.name == service)
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
        bounds=partial(bounds_of, market, m),
        ranges=partial(ranges, clients, spec.labels, spec.dqi),
        dqi=spec.dqi if clients.disclosure.public_data else None,
    )


def bounds_of(market: Market, m: int) -> Bounds:
    """Return the bounds of what service ``m`` of a market observes."""
    return bounds(market.population, market.schedule, market.services, m)


def ranges(clients: PopulationSpec, labels: int, parameters: DQIParameters) -> DataRanges:
    """Return the public ranges of clients' data, for a service whose data set has these labels and DQI parameters."""
    public = public_ranges(clients, labels, parameters)
    (lowest,), (highest,) = (ends / MICRO for ends in public.cost)
    (worst,), (best,) = public.dqi
    return DataRanges((float(lowest), float(highest)), (float(worst), float(best)))


def bounds(population: Population, schedule: Schedule, services: Sequence[ServiceSpec], m: int) -> Bounds:
    """Return the lowest and highest value of each part of what service ``m`` observes.

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
    clients = population.spec.count
    low, high = population.seen_range
    ahead = [schedule.at(round_) for round_ in schedule.turning_points]  # interventions count
    budget = max(conditions.budgets[services[m].name] for conditions in ahead)
    budget = max(budget, services[m].budget_cap or 0)
    highest = population.bid_range[1] / MICRO
    zero, one = np.zeros(1), np.ones(1)
    top = np.repeat(own_first(highest, m)[:, None], clients, axis=1)
    total = services[m].total_budget
    whole = {} if total is None else {"total_left": (zero, np.array([total / MICRO]))}
    return {
        "dqi": (np.full(clients, low[m]), np.full(clients, high[m])),
        "bids": (np.zeros_like(top), top),
        "available": (np.zeros(clients), np.ones(clients)),
        "budget": (zero, np.array([budget / MICRO])),
        "cores": (zero, np.array([max(conditions.cores for conditions in ahead)], dtype=np.float64)),
        "accuracy": (zero, one),
        "progress": (zero, one),
        **whole,
    }


def observed_parts(observation: Observation) -> dict[str, FloatArray]:
    """Return the parts of what a service observes, by name, in the order of ``bounds``."""
    left = observation.total_left
    whole = {} if left is None else {"total_left": np.array([left])}
    return {
        "dqi": observation.dqi,
        "bids": own_first(observation.bids, observation.services.index(observation.service)),
        "available": observation.available.astype(np.float64),
        "budget": np.array([observation.budget]),
        "cores": np.array([float(observation.cores)]),
        "accuracy": np.array([observation.accuracy]),
        "progress": np.array([(observation.round - 1) / observation.rounds]),
        **whole,
    }


def memory(player: Any) -> dict[str, Any]:
    """Return all that a policy, mechanism or behaviour holds, but for what is known of its own market.

    Another one of its class goes on from there once that is in its ``vars``.
    """
    return {name: value for name, value in vars(player).items() if not isinstance(value, PolicyContext)}


def own_first(rows: FloatArray, m: int) -> FloatArray:
    """Return rows [M, ...] with a service's own row first, the others in their order."""
    return np.concatenate([rows[m : m + 1], rows[:m], rows[m + 1 :]])


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
        policy = seated[service] = POLICIES.create(name, context(market, service), **(options or {}).get(service, {}))
        market.seat(service, name, privileged=policy.privileged)
    return seated
