"""The rivals that learn prices and values play every built-in scenario, and beat Random in the paper's market."""

from contextlib import closing

import pytest

from learning.evaluation import evaluate, everywhere
from learning.play_round import play_round
from learning.seats import seat
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import builtin_names, load
from support.evaluation import compare
from support.tiers import slow

RIVALS = ["resolving", "mirror", "bwk"]
SURROGATE = "training.backend=surrogate"


def factory(name, *changes):
    scenario, shelf = load(name, [SURROGATE, *changes]), Shelf()
    return lambda seed: build_market(scenario, seed, build_federation(scenario, seed, shelf, workers=0))


@pytest.mark.parametrize("policy", ["mirror", *slow("resolving", "bwk")])
@pytest.mark.parametrize("name", [*(it for it in builtin_names() if it not in ("afl", "crowd")), *slow("crowd")])
def test_every_built_in_scenario_can_be_played(name, policy) -> None:
    with closing(factory(name)(1)) as market:
        policies = seat(market, {service.name: policy for service in market.services})
        rounds = 2 + min(service.arrival for service in market.services)  # three in which somebody is there
        served = sum(row.served for _ in range(rounds) for row in play_round(market, policies).services)
    assert served > 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", RIVALS)
@pytest.mark.parametrize("market", ["paper", "scarce"])
def test_they_beat_random(market, policy) -> None:
    entrants = {name: everywhere(name) for name in (policy, "random")}
    assert compare(evaluate(factory(market), entrants, range(3)), policy, "random").low > 0.005


@pytest.mark.slow
@pytest.mark.parametrize("policy", RIVALS)
def test_they_beat_random_where_bids_are_hidden_and_costs_vary(policy) -> None:
    """Bids tell less of the data there, and the DQI is a rank."""
    entrants = {name: everywhere(name) for name in (policy, "random")}
    assert compare(evaluate(factory("private"), entrants, range(8)), policy, "random").low > 0
