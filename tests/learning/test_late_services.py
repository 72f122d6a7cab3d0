"""Environments and evaluations of markets in which services arrive later, or have budgets for the whole run."""

from dataclasses import replace

import numpy as np
import pytest

from des.market import Market
from learning.evaluation import evaluate
from learning.seats import seat

pytest.importorskip("pettingzoo")

from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from learning.environments.parallel_env import MarketEnv
from learning.environments.service_env import ServiceEnv


@pytest.fixture
def factory(make_market):
    """Beta arrives in round 3 and has a budget of 30 for the whole run."""

    def make(seed: int) -> Market:
        market = make_market(["alpha", "beta"], seed=seed)
        specs = [market.services[0], replace(market.services[1], arrival=3, total_budget=30_000_000)]
        again = make_market(specs, seed=seed)
        market.close()
        return again

    return make


@pytest.fixture(params=[False, True], ids=["dict", "flat"])
def flat(request):
    return request.param


def test_the_environments_are_what_their_libraries_expect(factory, flat) -> None:
    parallel_api_test(MarketEnv(factory, flat=flat), num_cycles=30)
    for service, rival in (("beta", "alpha"), ("alpha", "beta")):
        env = ServiceEnv(factory, service, {rival: "lcfa"})
        check_env(env, skip_render_check=True)


def test_an_agent_joins_when_its_service_arrives(factory) -> None:
    env = MarketEnv(factory)
    observations, _ = env.reset(seed=1)
    assert list(observations) == env.agents == ["alpha"]
    nobody = {"select": np.zeros(20, np.int8), "payment": np.ones(20, np.float32)}
    assert list(env.step({"alpha": nobody})[0]) == ["alpha"]
    observations, rewards, terminated, truncated, infos = env.step({"alpha": nobody})
    assert env.agents == ["alpha", "beta"]
    assert list(observations) == ["alpha", "beta"]
    assert (rewards["beta"], terminated["beta"], truncated["beta"], infos["beta"]) == (0.0, False, False, {})
    assert observations["beta"]["total_left"] == 30.0
    assert env.observation_space("beta").contains(observations["beta"])
    assert "total_left" not in observations["alpha"]


def test_rounds_without_any_service_pass(make_market) -> None:
    def late(seed: int) -> Market:
        return make_market([replace(make_market(["alpha"]).services[0], arrival=4)], seed=seed)

    env = MarketEnv(late)
    env.reset(seed=1)
    assert env.observed["alpha"].round == 4


def test_a_service_that_arrives_later_begins_when_it_does(factory) -> None:
    env = ServiceEnv(factory, "beta", {"alpha": "lcfa"})
    env.reset(seed=2)
    *_, info = env.step(env.action_space.sample())
    assert info["round"] == 3


def test_an_evaluation_counts_rounds_from_the_arrival(factory) -> None:
    def entrant(market: Market):
        return seat(market, {"alpha": "hqfa", "beta": "hqfa"})

    results = evaluate(factory, {"hqfa": entrant}, [0])
    assert (results.rounds_to_target().rounds == [[[6, 4]]]).all()  # of 6 rounds, of which the last 4
    assert results.accuracy[0, 0, 1, 1] == results.accuracy[0, 0, 0, 1]
    assert (results.reward[0, 0, :2, 1] == 0).all()
    accuracy = results.accuracy[0, 0]
    np.testing.assert_allclose(results.auc(), [[[accuracy[:, 0].mean(), accuracy[2:, 1].mean()]]])
