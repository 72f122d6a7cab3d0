"""From a scenario to RL environments, with real training on embedded data."""

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from learning.mahdrl.checkpoint import CheckpointError
from scenarios.build import Shelf
from scenarios.environments import market_factory, parallel_env, service_env
from scenarios.loader import load

SMALL = ["training.local_epochs=1", "training.eval_samples=50", "clients.data_size=[30, 40]", "rounds=3"]


@pytest.fixture(scope="module")
def scenario():
    return load("quickstart", SMALL)


@pytest.fixture(scope="module")
def shelf():
    return Shelf()


def nobody(env, agent):
    clients = env.action_space(agent)["select"].n
    return {"select": np.zeros(clients, np.int8), "payment": np.ones(clients, np.float32)}


def test_every_service_of_the_scenario_is_an_agent(scenario, shelf):
    env = parallel_env(scenario, seed=1, shelf=shelf)
    observations, _ = env.reset(seed=1)
    assert list(observations) == [service.name for service in scenario.services]
    steps = 0
    while env.agents:
        actions = {agent: nobody(env, agent) for agent in env.agents}
        for action in actions.values():
            action["select"][:3] = 1
        observations, rewards, *_ = env.step(actions)
        steps += 1
        assert all(env.observation_space(agent).contains(seen) for agent, seen in observations.items())
        assert all(reward >= 1 for reward in rewards.values())
    env.close()
    assert steps == 3


def test_real_training_is_repeatable_through_the_environment(scenario, shelf):
    def curve(env):
        env.reset(seed=2)
        seen = []
        while env.agents:
            actions = {agent: nobody(env, agent) for agent in env.agents}
            actions[env.agents[0]]["select"][:4] = 1
            seen.append(env.step(actions)[4])
        return seen

    one, other = parallel_env(scenario, shelf=shelf), parallel_env(scenario, seed=9, shelf=shelf, workers=2)
    assert curve(one) == curve(other) == curve(one)
    one.close()
    other.close()


def test_a_service_meets_the_scenario_s_own_policies(scenario, shelf):
    service, *rivals = [service.name for service in scenario.services]
    env = service_env(scenario, service, shelf=shelf)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    env.action_space.seed(1)  # an action drawn anew each time may outbid a rival everywhere
    _, reward, _, _, info = env.step(env.action_space.sample())
    assert reward >= 1
    assert info["round"] == 1
    market = env._env.market
    assert [spec.policy for spec in market.services if spec.name in rivals] == [
        rival.policy for rival in scenario.services if rival.name in rivals
    ]
    assert all(market.ledger.accounts[rival].paid > 0 for rival in rivals)
    env.close()


def test_a_rival_plays_the_agent_that_the_scenario_names(shelf, tmp_path):
    (tmp_path / "agent").write_bytes(b"no agent")
    rival = ["services.scribbles.policy=mahdrl", f"services.scribbles.checkpoint={tmp_path / 'agent'}"]
    with pytest.raises(CheckpointError, match=str(tmp_path / "agent")):
        service_env(load("quickstart", [*SMALL, *rival]), "digits", shelf=shelf)


def test_an_unknown_service_is_refused(scenario, shelf):
    with pytest.raises(ValueError, match="nobody") as caught:
        service_env(scenario, "nobody", shelf=shelf)
    names = ["digits", "scribbles", "strokes"]
    assert str(caught.value) == f"the market's services are {names}, not 'nobody' and the rivals {names}"


def test_a_factory_shares_its_data(scenario):
    loaded = []
    shelf = Shelf()
    real = shelf._loader
    shelf._loader = lambda name: loaded.append(name) or real(name)
    make = market_factory(scenario, shelf)
    for seed in (0, 1):
        make(seed).close()
    assert sorted(loaded) == sorted({service.dataset for service in scenario.services})
