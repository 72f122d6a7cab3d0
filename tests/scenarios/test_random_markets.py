"""Markets drawn at random, to train on."""

import pytest

from scenarios.file.schema import Scenario
from scenarios.loader import dumps, parse
from scenarios.random_markets import BUDGETS, CLIENTS, CORES, SERVICES, draw, drawn

MARKETS = drawn(seed=7, count=200)


def means(market: Scenario) -> list[float]:
    """Return the services' budgets in mean bids."""
    clients = market.clients
    bid = clients.cost.per_sample * sum(clients.data_size) / len(clients.data_size)
    bid -= clients.cost.per_emd * sum(clients.emd) / len(clients.emd)
    return [service.budget / bid for service in market.services]


@pytest.mark.parametrize("market", MARKETS[:40], ids=lambda market: market.name)
def test_a_drawn_market_is_a_valid_scenario(market: Scenario) -> None:
    assert parse(dumps(market), market.name) == market


def test_the_whole_range_is_drawn() -> None:
    assert {len(market.services) for market in MARKETS} == set(range(SERVICES[0], SERVICES[1] + 1))
    assert {market.clients.cores for market in MARKETS} == set(range(CORES[0], CORES[1] + 1))
    counts = [market.clients.count for market in MARKETS]
    assert CLIENTS[0] <= min(counts) <= 10 < 70 < max(counts) <= CLIENTS[1]
    budgets = [value for market in MARKETS for value in means(market)]
    assert BUDGETS[0] * 0.99 < min(budgets) < 2.5 < 25 < max(budgets) < BUDGETS[1] * 1.01
    assert {market.dqi for market in MARKETS} == {"published", "fitted"}
    assert any(market.clients.cost.per_emd < 0 for market in MARKETS)
    assert any(market.clients.cost.noise for market in MARKETS)


def test_a_market_depends_on_its_seed_and_place_alone() -> None:
    assert drawn(7, 3) == MARKETS[:3]
    assert draw(7, 150) == MARKETS[150]
    assert draw(8, 0) != MARKETS[0]
