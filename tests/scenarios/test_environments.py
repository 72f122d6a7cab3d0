"""From a scenario to RL environments, with real training on embedded data."""

import warnings

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from flmarket.core.errors import InputError
from flmarket.learn import parallel_env, service_env
from learning.seats import bounds_of
from learning.training.agent_files import CheckpointError
from scenarios.build import Shelf, market_factory, observed_bounds
from scenarios.file.schema import Scenario
from scenarios.loader import builtin_names, load, points

SMALL = ["training.local_epochs=1", "training.eval_samples=50", "clients.data_size=[30, 40]", "rounds=3"]
ONE_OFFER = [name for name in builtin_names() if name != "afl"]
"""Those of which a round is one offer; in `afl` clients come one after another."""


@pytest.fixture(scope="module")
def scenario():
    return load("quickstart", SMALL)


def changing(name: str) -> Scenario:
    """The first point of a built-in scenario, on the surrogate; budgets, K and who is there change on the way."""
    first = points(load(name, ["training.backend=surrogate"]))[0].scenario
    clients = min(first.clients.count, 50)
    changes = [
        {"round": 2, "key": f"services.{first.services[0].name}.budget", "value": 2 * first.services[0].budget + 1},
        {"round": 3, "key": "clients.cores", "value": first.clients.cores + 2},
        {"round": 3, "key": "clients.offline", "value": [0, 2]},
        {"round": 5, "key": "clients.cores", "value": 1},
    ]
    data = first.model_dump(exclude_none=True)
    data["clients"]["count"] = clients
    for service in data["services"]:
        service["arrival"] = min(service["arrival"], 4)
    for stream in data.get("streams", ()):  # all of its services arrive in these rounds
        stream["rate"] = 1e6
    return Scenario.model_validate(data | {"rounds": 8, "interventions": changes})


@pytest.mark.slow
@pytest.mark.parametrize("flat", [False, True], ids=["dict", "flat"])
@pytest.mark.parametrize("name", ONE_OFFER)
def test_the_libraries_checkers_pass_on_every_built_in_scenario_with_interventions(name, flat):
    scenario = changing(name)
    parallel_api_test(parallel_env(scenario, flat=flat), num_cycles=20)
    env = parallel_env(scenario, flat=flat)
    observations, _ = env.reset(seed=1)
    while env.agents:
        for agent, seen in observations.items():
            assert env.observation_space(agent).contains(seen), (agent, env.market.round)
        observations, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    with warnings.catch_warnings():
        if not flat:  # Gymnasium advises normalised Boxes; the Dict pays in units of the bid.
            warnings.filterwarnings("ignore", message=".*symmetric and normalized.*", category=UserWarning)
        check_env(service_env(scenario, scenario.services[0].name, flat=flat), skip_render_check=True)


def test_observations_show_k_and_who_is_there_and_offline_clients_count_as_dropped():
    env = parallel_env(changing("scarce"))
    observations, _ = env.reset(seed=1)
    agent, seen = env.agents[0], []
    while env.agents:
        seen.append(
            (float(observations[agent]["cores"][0]), np.flatnonzero(observations[agent]["available"] == 0).tolist())
        )
        actions = {agent: nobody(env, agent) for agent in env.agents}
        actions[agent]["select"][:1] = 1
        observations, *_, infos = env.step(actions)
        assert infos[agent]["dropped"] == len(seen[-1][1][:1])
    assert seen == [(1.0, []), (1.0, []), (3.0, [0, 2]), (3.0, [0, 2]), *[(1.0, [0, 2])] * 4]


def test_an_environment_plays_one_market_not_a_sweep():
    with pytest.raises(InputError, match=r"varies clients\.cores; load it with"):
        parallel_env(load("paper-cores", ["training.backend=surrogate"]))
    env = parallel_env(load("paper-cores", {"training.backend": "surrogate", "sweep": {}, "clients.cores": 3}))
    assert env.reset(seed=0)[0]["mnist"]["cores"] == 3


def nobody(env, agent):
    clients = env.action_space(agent)["select"].n
    return {"select": np.zeros(clients, np.int8), "payment": np.ones(clients, np.float32)}


def test_real_training_is_repeatable_through_the_environment(scenario):
    def curve(env):
        env.reset(seed=2)
        seen = []
        while env.agents:
            actions = {agent: nobody(env, agent) for agent in env.agents}
            actions[env.agents[0]]["select"][:4] = 1
            seen.append(env.step(actions)[4])
        return seen

    one, other = parallel_env(scenario), parallel_env(scenario, seed=9, workers=2)
    assert curve(one) == curve(other) == curve(one)
    one.close()
    other.close()


def test_a_service_meets_the_scenario_s_own_policies(scenario):
    service, *rivals = [service.name for service in scenario.services]
    env = service_env(scenario, service)
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


def test_a_rival_plays_the_agent_that_the_scenario_names(tmp_path):
    (tmp_path / "agent").write_bytes(b"no agent")
    rival = ["services.scribbles.policy=mahdrl", f"services.scribbles.checkpoint={tmp_path / 'agent'}"]
    with pytest.raises(CheckpointError, match=str(tmp_path / "agent")):
        service_env(load("quickstart", [*SMALL, *rival]), "digits")


def test_a_factory_shares_its_data(scenario):
    loaded = []
    shelf = Shelf()
    real = shelf._loader
    shelf._loader = lambda name: loaded.append(name) or real(name)
    make = market_factory(scenario, shelf)
    for seed in (0, 1):
        make(seed).close()
    assert sorted(loaded) == sorted({service.dataset for service in scenario.services})


@pytest.mark.parametrize("name", ONE_OFFER)
def test_a_scenario_s_bounds_are_those_of_its_market(name):
    scenario = changing(name)
    market = market_factory(scenario)(0)
    for m, service in enumerate(scenario.services):
        found = observed_bounds(scenario, service.name)
        for part, limits in bounds_of(market, m).items():
            np.testing.assert_array_equal(found.pop(part), limits)
        assert not found
