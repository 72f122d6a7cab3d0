"""The best that a service could have had in a round, given its rivals' offers; exact for the paper's mechanism.

Against fixed offers, a client is won for sure at its critical price, and the best set within the budget is a 0/1
knapsack (``learning.policies.oracle``, ``learning.client_selection.knapsack``). A set is worth the sum of its clients'
DQI (eq. 6), which is what services see; a DQI below zero counts as zero, because no service has to take such a client.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from des.money import MICRO, Micro, MicroArray
from des.observation import Offer
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.analysis.what_if.union_bound import ReportedData, best_union
from learning.client_selection.knapsack import knapsack
from learning.policies.oracle import critical_prices

if TYPE_CHECKING:  # screens work out what was possible without a run's logs
    from des.clients.population import Qualities
    from flmarket.analysis.verification.evidence import Logs
    from flmarket.analysis.verification.findings import Rows

MOST_CLIENTS = 400
"""Beyond which it takes too long to be worked out for many rounds: where every client asks another price, the time of a
knapsack grows steeply."""


@dataclass(frozen=True, slots=True)
class Possible:
    """The best that a service could have had under some conditions, its rivals' offers being what they were."""

    clients: IntArray  # [k] the set
    prices: MicroArray  # [C] what wins each client for sure, micro-units
    quality: float  # the sum of the set's DQI, or the DQI of all its images

    @property
    def cost(self) -> Micro:
        """The cost of the set at its prices, micro-units."""
        return int(self.prices[self.clients].sum())


def worth(dqi: Iterable[float]) -> float:
    """Return what clients with these DQI are worth."""
    return fsum(max(it, 0.0) for it in dqi)


def prices_of(
    bids: MicroArray,  # [C] the clients' bids to the service, micro-units
    rivals: Iterable[Sequence[tuple[int, Micro]]],  # what each other service offered, as for ``possible``
    cores: int | IntArray,  # K, or [C] what each client has
) -> MicroArray:
    """Return [C] what wins each client for sure, micro-units."""
    offers = [
        Offer(np.array([client for client, _ in pairs]), np.array([payment / MICRO for _, payment in pairs]))
        for pairs in rivals
        if pairs
    ]
    return critical_prices(bids, offers, cores)


def under_changes(best: Callable[..., Possible], rivals: Iterable[str], budget: Micro) -> dict[str, Possible]:
    """Return the best that a service with a budget could have had with one thing changed, by what that is.

    ``best`` takes ``budget``, ``cores`` and ``without`` (``best_set``). A rival's absence is left out where it
    would have bought nothing.
    """
    now = best()
    without = {f"Without {name}": best(without=name) for name in rivals}
    return {
        "One more unit of budget": best(budget=MICRO),
        "Twice the budget": best(budget=budget),
        "One more core for each client": best(cores=1),
        **{what: other for what, other in without.items() if other.quality > now.quality},
    }


def possible(
    bids: MicroArray,  # [C] the clients' bids to the service, micro-units
    dqi: FloatArray,  # [C] the DQI of their data for the service
    # what each other service offered: a client and a payment in micro-units for each offer
    rivals: Iterable[Sequence[tuple[int, Micro]]],
    *,
    cores: int | IntArray,  # K, or [C] what each client has
    budget: Micro,  # of the service, micro-units
    offline: Collection[int] = (),  # clients that could not be had
    serves: BoolArray | None = None,  # [C] whether clients can serve it at all; None if all can
) -> Possible:
    """Return the best set that a service could have had."""
    prices = prices_of(bids, rivals, cores)
    values = np.maximum(dqi, 0.0)
    values[list(offline)] = 0.0
    if serves is not None:
        values[~serves] = 0.0
    chosen = _best(prices.tobytes(), values.tobytes(), budget)
    return Possible(chosen, prices, float(values[chosen].sum()))


def best_set(
    logs: "Logs",
    number: int,
    world: "Qualities",  # of the round
    service: str,
    *,
    budget: Micro = 0,  # how much more money than it had, micro-units
    cores: int = 0,  # how many more cores than each client had
    without: str | None = None,  # a rival that makes no offers
    union: ReportedData | None = None,  # the data whose images together make a set's worth; None: the sum of its DQI
) -> Possible:
    """Return the best set that a service could have had in a round, its rivals' offers being what they were.

    Raises:
        InputError: there are too many unions.
    """
    now, m = logs.conditions(number), logs.places[service]
    rivals = _offers_by(logs.rows["offers"].where(logs.span_of(number)), service, without)
    serves = None if world.serves is None else world.serves[m]
    capacity, budget = now.capacity + cores, now.budgets[service] + budget
    if union is None:
        return possible(
            world.bid[m], world.dqi[m], rivals, cores=capacity, budget=budget, offline=now.offline, serves=serves
        )
    there = np.ones(len(union.size), dtype=np.bool_) if serves is None else serves.copy()
    there[list(now.offline)] = False
    prices = prices_of(world.bid[m], rivals, capacity)
    chosen = best_union(union, prices, budget, np.flatnonzero(there))
    return Possible(chosen, prices, union.worth(chosen))


def reported_data(logs: "Logs", world: "Qualities", m: int) -> ReportedData:
    """Return the data that clients report to a service in a round."""
    parameters = logs.dqi_parameters(logs.scenario.services[m].dataset)
    return ReportedData(world.data_size[m], world.emd[m], parameters)


def prices_in(
    logs: "Logs",
    number: int,
    world: "Qualities",  # of the round
    service: str,
) -> MicroArray:
    """Return [C] what wins each client for sure in a round, micro-units, rivals' offers being what they were."""
    rivals = _offers_by(logs.rows["offers"].where(logs.span_of(number)), service)
    return prices_of(world.bid[logs.places[service]], rivals, logs.conditions(number).capacity)


def _offers_by(offers: "Rows", *without: str | None) -> list[list[tuple[int, Micro]]]:
    """Return the clients and the payments that services offered in a round, but for some services."""
    by_service: dict[str, list[tuple[int, Micro]]] = {}
    columns = (offers[name].tolist() for name in ("service", "client", "payment"))
    for service, client, payment in zip(*columns, strict=True):
        if service not in without:
            by_service.setdefault(service, []).append((client, payment))
    return list(by_service.values())


# In a large market few rivals matter, so that what could be had without each of them is the same thing again and again.
@lru_cache(maxsize=32)
def _best(prices: bytes, values: bytes, budget: Micro) -> IntArray:
    chosen = np.sort(knapsack(np.frombuffer(prices, dtype=np.int64), np.frombuffer(values), budget))
    chosen.setflags(write=False)
    return chosen
