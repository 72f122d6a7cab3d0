"""Small markets without any training, for the tests of ``des``."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from des.clients.data_tables import Group, PopulationSpec
from des.contracts import ContractTerms
from des.costs.linear import Linear
from des.market import Market
from des.mechanism import Mechanism
from des.observation import Observation, Offer
from des.schedule import Availability, Change, Conditions, Schedule
from des.service import ServiceSpec
from des.timeline import Durations
from fl.data.dqi import PUBLISHED
from fl.training.trigger import Trigger
from support.clients import changed
from support.federations import StubFederation

PLAIN_SERVICE = ServiceSpec(
    name="?",
    dataset="digits",
    labels=10,
    dqi=PUBLISHED,
    budget=20_000_000,
    target_accuracy=0.97,
    reward_base=100.0,
    local_epochs=1,
    policy="by hand",
)

# One kind of data set only, so that everything can be computed by hand:
# 100 images, 10 a label; EMD 0.4 = 20 images too many and 20 too few; bid 0.025 * 100 - 0.4 = 2.1.
PLAIN_CLIENTS = PopulationSpec(
    cores=1, groups=(Group(count=3, data_sizes=(100,), emds=(0.4,), cost=Linear(per_sample=0.025, per_emd=1.0)),)
)
PAPER_CLIENTS = changed(PLAIN_CLIENTS, count=20, cores=2, data_sizes=(100, 200, 300, 400), emds=(0.4, 0.6, 0.8, 1.0))
PLAIN_TIMELINE = Durations(seconds_per_sample=0.01, upload_seconds=0.5)


def market_of(
    services: Sequence[str | ServiceSpec],
    clients: PopulationSpec = PLAIN_CLIENTS,
    *,
    timeline: Durations = PLAIN_TIMELINE,
    rounds: int = 10,
    federation: Any = None,
    mechanism: Mechanism | None = None,
    seed: int = 0,
    interventions: Sequence[Change] = (),
    terms: ContractTerms | None = None,
    sequential: bool = False,
    triggers: Sequence[Trigger] | None = None,
    availability: Availability | None = None,
    **clients_with: Any,
) -> Market:
    specs = [replace(PLAIN_SERVICE, name=s) if isinstance(s, str) else s for s in services]
    population = changed(clients, **clients_with)
    budgets = {spec.name: spec.budget for spec in specs}
    return Market(
        population,
        specs,
        timeline,
        rounds,
        federation or StubFederation(),
        seed,
        Schedule(Conditions(budgets, population.cores, availability=availability), interventions),
        mechanism,
        terms,
        sequential=sequential,
        triggers=triggers,
    )


def offer_of(*wanted: tuple[int, float]) -> Offer:
    clients = np.array([client for client, _ in wanted], dtype=np.int64)
    return Offer(clients, np.array([payment for _, payment in wanted], dtype=np.float64))


def cheapest(observation: Observation) -> Offer:
    """Pay clients their bids, in the order of their indices, as far as the budget goes."""
    bids = observation.own_bids
    affordable = np.cumsum(bids) <= observation.budget + 1e-9
    return Offer(np.flatnonzero(affordable), bids[affordable])


# Session-wide, because Hypothesis runs a test many times in one go. They hold no state.
@pytest.fixture(scope="session")
def make_market() -> Callable[..., Market]:
    """``make_market(["alpha", "beta"], cores=2, ...)``: 3 like clients, 1 core, unless told otherwise."""
    return market_of


@pytest.fixture(scope="session")
def make_offer() -> Callable[..., Offer]:
    """``make_offer((client, payment), ...)``."""
    return offer_of


@pytest.fixture(scope="session")
def pay_the_bid() -> Callable[[Observation], Offer]:
    return cheapest


@pytest.fixture(scope="session")
def plain_service() -> ServiceSpec:
    return PLAIN_SERVICE


@pytest.fixture(scope="session")
def paper_clients() -> PopulationSpec:
    """The paper's 20 clients of 2 cores."""
    return PAPER_CLIENTS


@pytest.fixture(scope="session")
def stub_federation() -> type[StubFederation]:
    return StubFederation
