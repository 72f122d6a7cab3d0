"""The market as a PettingZoo and as a Gymnasium environment."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from des.market import Market
from des.mechanism import MECHANISMS
from des.observation import Offer
from des.offer_checks import OfferError
from fl.arithmetic.streams import stream
from learning.environments.actions import ActionError

pytest.importorskip("pettingzoo")

from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test
from pettingzoo.utils.conversions import parallel_to_aec

from learning.environments.parallel_env import MarketEnv
from learning.environments.service_env import ServiceEnv
from support.feedback import by_client


@pytest.fixture(params=[False, True], ids=["dict", "flat"])
def flat(request):
    return request.param


@pytest.fixture
def make_env(make_market):
    """``make_env(rounds=3, ...)``: an environment over markets like ``make_market`` makes."""

    def make(names=("alpha", "beta", "gamma"), *, gamma=0.95, payment_limit=2.0, flat=False, padded=False, **market):
        factory = lambda seed: make_market(names, seed=seed, **market)  # noqa: E731
        return MarketEnv(factory, gamma=gamma, payment_limit=payment_limit, flat=flat, padded=padded)

    return make


def sampled(env, rng):
    """Random actions that do not depend on the state of the spaces' own generators."""
    actions = {}
    for agent in env.agents:
        space = env.action_space(agent)
        space.seed(int(rng.integers(2**31)))
        actions[agent] = space.sample()
    return actions


def nobody(clients=20):
    return {"select": np.zeros(clients, np.int8), "payment": np.ones(clients, np.float32)}


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


# ---- the libraries' own checks


def test_it_is_a_parallel_env(make_env, flat):
    parallel_api_test(make_env(rounds=20, speed=0.3, flat=flat), num_cycles=200)


def test_it_is_an_aec_env_by_conversion(make_env, flat):
    with warnings.catch_warnings():
        # PettingZoo advises against Dict spaces and free agent names; both are this environment's interface.
        for advice in ("Observation", "Action space", "We recommend agents", "Agent's", "The class of"):
            warnings.filterwarnings("ignore", message=f"{advice}.*", category=UserWarning)
        # A converted environment always has a render method that it cannot answer for.
        warnings.filterwarnings("ignore", message=".*render.*", category=UserWarning)
        api_test(parallel_to_aec(make_env(rounds=20, speed=0.3, flat=flat)), num_cycles=100)


def test_the_single_agent_view_is_a_gymnasium_env(make_market, flat):
    rivals = {"beta": "lcfa", "gamma": "oracle"}
    with warnings.catch_warnings():
        if not flat:  # Gymnasium advises normalised Boxes; the Dict pays in units of the bid.
            warnings.filterwarnings("ignore", message=".*symmetric and normalized.*", category=UserWarning)
        check_env(ServiceEnv(lambda seed: make_market(seed=seed), "alpha", rivals, flat=flat), skip_render_check=True)


# ---- episodes


def test_the_same_seed_and_actions_give_the_same_episode(make_env, flat):
    def episode(env, seed):
        rng = stream(seed, "actions")
        seen = [env.reset(seed=seed)]
        while env.agents:
            seen.append(env.step(sampled(env, rng)))
        return seen

    first, second = make_env(flat=flat, rounds=5, speed=0.3), make_env(flat=flat, rounds=5, speed=0.3)
    second.reset(seed=99)
    second.step(sampled(second, stream(0, "other")))
    one, other = episode(first, 7), episode(second, 7)
    assert len(one) == len(other)
    for step, counterpart in zip(one, other, strict=True):
        assert all(same(a, b) for a, b in zip(step, counterpart, strict=True))
    assert not same(one[0][0], episode(first, 8)[0][0])


def test_episodes_without_a_seed_differ_but_follow_from_the_last_one_given(make_env):
    env = make_env()
    first = [env.reset(seed=1)[0], env.reset()[0], env.reset()[0]]
    again = [env.reset(seed=1)[0], env.reset()[0], env.reset()[0]]
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    assert not same(first[0], first[1])
    assert not same(first[1], first[2])


@pytest.mark.parametrize(
    "market",
    [{}, {"count": 1}, {"names": ["only"]}, {"count": 1, "names": ["only"]}, {"speed": 3.0}, {"budget": 0}],
    ids=["paper", "C=1", "M=1", "C=M=1", "exits", "no budget"],
)
def test_every_observation_lies_in_its_space(make_env, flat, market):
    env = make_env(flat=flat, rounds=8, **market)
    for seed in range(3):
        observations, _ = env.reset(seed=seed)
        rng = stream(seed, "actions")
        assert set(observations) == set(env.possible_agents)
        while env.agents:
            assert set(env.agents) <= set(observations)
            observations, *_ = env.step(sampled(env, rng))
            for agent, observation in observations.items():
                assert env.observation_space(agent).contains(observation)


def test_an_observation_is_what_the_service_sees(make_env, make_market):
    env = make_env()
    observations, infos = env.reset(seed=5)
    seen = make_market(seed=5).open_round()["beta"]
    beta = observations["beta"]
    assert infos == {"alpha": {}, "beta": {}, "gamma": {}}
    np.testing.assert_array_equal(beta["dqi"], seen.dqi.astype(np.float32))
    np.testing.assert_array_equal(beta["bids"], seen.bids[[1, 0, 2]].astype(np.float32))  # the own row first
    assert beta["available"].tolist() == [1.0] * 20
    assert (beta["budget"], beta["cores"]) == (20, 2)
    assert beta["accuracy"] == np.float32(0.1)
    assert beta["progress"] == 0


def test_the_flat_observation_is_the_dict_scaled_to_its_bounds(make_env):
    plain, flat = make_env(), make_env(flat=True)
    observation, scaled = plain.reset(seed=5)[0]["beta"], flat.reset(seed=5)[0]["beta"]
    space = plain.observation_space("beta")
    assert scaled.shape == (2 * 20 + 3 * 20 + 4,)
    position = 0
    for name in observation:
        low, high = space[name].low.ravel(), space[name].high.ravel()
        expected = (observation[name].ravel() - low) / (high - low)
        np.testing.assert_allclose(scaled[position : position + len(low)], expected, atol=1e-5)
        position += len(low)


# ---- what actions do


def test_payments_are_in_units_of_the_bid(make_env):
    env = make_env(["only"])
    env.reset(seed=1)
    bids = env.observed["only"].own_bids
    action = nobody()
    action["select"][3] = 1
    action["payment"][3] = 1.5
    _, _, _, _, infos = env.step({"only": action})
    assert infos["only"]["spent"] == pytest.approx(1.5 * bids[3], abs=1e-6)
    assert (infos["only"]["wanted"], infos["only"]["served"], infos["only"]["dropped"]) == (1, 1, 0)


def test_the_flat_action_selects_above_zero_and_pays_from_the_bid_to_the_limit(make_env):
    env = make_env(["only"], flat=True, payment_limit=3.0, budget=100_000_000)
    env.reset(seed=1)
    action = np.full(40, -1.0, np.float32)
    action[[2, 5]] = 0.1, 1.0
    action[25] = 0.0
    offer, dropped = env.offer("only", action)
    bids = env.observed["only"].own_bids
    assert dropped == 0
    assert by_client(offer) == pytest.approx({2: bids[2], 5: 2 * bids[5]}, abs=1e-6)


def test_an_action_over_the_budget_is_cut_to_it(make_env):
    env = make_env(["only"])
    env.reset(seed=1)
    everybody = {"select": np.ones(20, np.int8), "payment": np.ones(20, np.float32)}
    _, _, _, _, infos = env.step({"only": everybody})
    assert infos["only"]["spent"] <= 20
    assert infos["only"]["dropped"] == 20 - infos["only"]["wanted"] > 0


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (np.full(40, np.nan), "between -1 and 1"),
        (np.full(40, 1.5), "between -1 and 1"),
        (np.zeros(39), "40 values"),
        ({"select": np.zeros(20), "payment": np.full(20, np.nan)}, "not finite"),
        ({"select": np.full(20, np.nan), "payment": np.ones(20)}, "not finite"),
        ({"select": np.full(20, 2), "payment": np.ones(20)}, "zeros and ones"),
        ({"select": np.zeros(20), "payment": np.full(20, 0.5)}, "between 1 and 2.0 bids"),
        ({"select": np.zeros(20), "payment": np.full(20, 2.5)}, "between 1 and 2.0 bids"),
        (
            {"select": np.zeros(19), "payment": np.ones(20)},
            "select must hold 20 values, one for each client, not have shape",
        ),
        ({"select": np.zeros(20)}, "'select' and 'payment'"),
        (np.zeros(40), "'select' and 'payment'"),
    ],
)
def test_an_action_outside_its_space_is_refused(make_env, action, problem):
    flat = "select" not in problem and not isinstance(action, dict)
    env, nothing = make_env(flat=flat), np.zeros(40) if flat else nobody()
    env.reset(seed=1)
    with pytest.raises(ActionError, match=f"service 'beta', round 1: .*{problem}"):
        env.step({"alpha": nothing, "beta": action, "gamma": nothing})
    env.step(dict.fromkeys(env.agents, nothing))  # the round is still open


def test_actions_must_come_from_all_agents_in_an_episode(make_env):
    env = make_env(rounds=1)
    with pytest.raises(ActionError, match=r"call reset\(\)"):
        env.step({})
    env.reset(seed=1)
    for given in (["alpha"], ["alpha", "beta", "gamma", "delta"]):
        with pytest.raises(ActionError, match=r"must come from \['alpha', 'beta', 'gamma'\], not from \['alpha'"):
            env.step(dict.fromkeys(given, nobody()))
    env.step(dict.fromkeys(env.agents, nobody()))
    assert env.agents == []


def test_after_the_end_steps_are_empty_and_actions_of_who_has_left_are_not_looked_at(make_env):
    """As in PettingZoo's own environments, which wrappers such as SuperSuit's black_death rely on."""
    env = make_env(["alpha", "beta"], targets={"alpha": 0.09}, rounds=2)
    env.reset(seed=1)
    env.step({"alpha": nobody(), "beta": nobody()})
    assert set(env.step({"alpha": None, "beta": nobody()})[0]) == {"beta"}
    for actions in ({}, {"alpha": nobody(), "beta": nobody()}):
        assert env.step(actions) == ({}, {}, {}, {}, {})
    assert env.reset(seed=1)[0].keys() == {"alpha", "beta"}


def test_padded_services_stay_agents_until_the_market_ends(make_env, make_market):
    late = replace(make_market(["late"]).services[0], arrival=3, target_accuracy=0.99)
    env = make_env(["alpha", late], targets={"alpha": 0.09}, rounds=4, padded=True, gamma=0.5)
    observations, infos = env.reset(seed=1)
    played = [(observations, {}, {}, {}, infos)]
    while env.agents:
        assert env.agents == ["alpha", "late"]
        played.append(env.step(dict.fromkeys(env.agents, nobody())))
    observations, rewards, terminated, truncated, infos = zip(*played, strict=True)
    assert [[info["acting"] for info in own.values()] for own in infos] == [
        [True, False],
        [False, False],
        [False, True],  # arrives in round 3
        [False, True],
        [False, False],
    ]
    assert all(own["alpha"].keys() == own["late"].keys() == infos[0]["alpha"].keys() for own in infos)
    assert [own["late"]["round"] for own in infos] == [0, 1, 2, 3, 4]
    assert rewards[1] == {"alpha": pytest.approx(100**0.09 * 1.875), "late": 0.0}
    assert rewards[2] == {"alpha": 0.0, "late": 0.0}
    assert rewards[3] == rewards[4] == {"alpha": 0.0, "late": pytest.approx(100**0.1)}
    assert not any(any((own | other).values()) for own, other in zip(terminated[1:4], truncated[1:4], strict=True))
    assert (terminated[4], truncated[4]) == ({"alpha": True, "late": False}, {"alpha": False, "late": True})
    assert all(env.observation_space(name).contains(seen) for own in observations for name, seen in own.items())
    assert [(own["alpha"]["bids"][0] > 0).all() for own in observations] == [True, False, False, False, False]


def test_the_state_is_what_all_services_observe(make_env, flat):
    env, one = make_env(flat=flat), make_env(flat=True)
    env.reset(seed=3)
    observations, _ = one.reset(seed=3)
    while env.agents:
        assert env.state_space.contains(env.state())
        np.testing.assert_array_equal(env.state(), np.concatenate(list(observations.values())))
        env.step(dict.fromkeys(env.agents, nobody() if not flat else np.zeros(40)))
        observations, *_ = one.step(dict.fromkeys(one.agents, np.zeros(40)))
    np.testing.assert_array_equal(env.state(), np.concatenate(list(observations.values())))


def test_offers_are_checked_and_not_projected(make_env):
    env = make_env(["only"])
    env.reset(seed=1)
    bids = env.observed["only"].own_bids
    with pytest.raises(OfferError, match="over the budget"):
        env.step_offers({"only": Offer(np.arange(20), bids)})


# ---- rewards and ends


def test_a_service_leaves_at_its_target_with_the_rest_of_its_absorbing_reward(make_env):
    env = make_env(["alpha", "beta"], targets={"alpha": 0.09}, rounds=4, gamma=0.5)
    env.reset(seed=1)
    observations, rewards, terminated, truncated, infos = env.step({"alpha": nobody(), "beta": nobody()})
    assert (terminated, truncated) == ({"alpha": True, "beta": False}, {"alpha": False, "beta": False})
    assert rewards["alpha"] == pytest.approx(100**0.09 * (1 + 0.5 + 0.25 + 0.125))
    assert rewards["beta"] == pytest.approx(100**0.1)
    assert infos["alpha"]["accuracy"] == pytest.approx(0.1)
    assert env.agents == ["beta"]
    assert (observations["beta"]["bids"][1] == 0).all()  # alpha's row: it has left
    assert (observations["alpha"]["bids"][0] == 0).all()
    assert set(env.step({"beta": nobody()})[0]) == {"beta"}


def test_the_rest_is_the_same_whoever_arrives_after_rounds_without_any_service(make_market) -> None:
    def late(seed: int) -> Market:
        alpha, beta = make_market(["alpha", "beta"]).services
        return make_market([replace(alpha, target_accuracy=0.09), replace(beta, arrival=4)], seed=seed, rounds=5)

    env = MarketEnv(late, gamma=0.5)
    env.reset(seed=1)
    _, rewards, *_ = env.step({"alpha": nobody()})
    assert env.observed["beta"].round == 4
    assert rewards["alpha"] == pytest.approx(100**0.09 * (1 + 0.5 + 0.25 + 0.125 + 0.0625))


def test_the_last_round_truncates_who_is_left(make_env):
    env = make_env(["alpha", "beta"], targets={"alpha": 0.09}, rounds=2)
    env.reset(seed=1)
    env.step({"alpha": nobody(), "beta": nobody()})
    observations, rewards, terminated, truncated, _ = env.step({"beta": nobody()})
    assert (terminated, truncated) == ({"beta": False}, {"beta": True})
    assert rewards["beta"] == pytest.approx(100**0.1)  # nothing is added
    assert observations["beta"]["progress"] == 1
    assert observations["beta"]["bids"][0].min() > 0  # what a next round would bring


def test_a_target_met_in_the_last_round_terminates_without_a_rest(make_env):
    env = make_env(["only"], target=0.09, rounds=1)
    env.reset(seed=1)
    _, rewards, terminated, truncated, _ = env.step({"only": nobody()})
    assert (terminated["only"], truncated["only"]) == (True, False)
    assert rewards["only"] == pytest.approx(100**0.09)


@pytest.mark.parametrize("options", [{"gamma": 0.0}, {"gamma": 1.1}, {"payment_limit": 1.0}, {"payment_limit": np.nan}])
def test_settings_out_of_range_are_refused(make_env, options):
    with pytest.raises(ValueError, match="must be"):
        make_env(**options)


def test_markets_are_closed_when_the_next_episode_starts(make_market):
    made = []

    def factory(seed):
        made.append(make_market(seed=seed))
        return made[-1]

    env = MarketEnv(factory)
    env.reset(seed=1)
    env.reset(seed=2)
    assert [market._federation.closed for market in made] == [True, True, False]
    env.close()
    assert made[-1]._federation.closed


# ---- the single-agent view


def test_rivals_play_by_script(make_market):
    env = ServiceEnv(lambda seed: make_market(seed=seed), "beta", {"alpha": "hqfa", "gamma": "pacing"}, flat=False)
    observation, _ = env.reset(seed=4)
    assert env.observation_space.contains(observation)
    rounds = 0
    ended = False
    while not ended:
        observation, reward, terminated, truncated, info = env.step(nobody())
        rounds += 1
        ended = terminated or truncated
        assert env.observation_space.contains(observation)
    assert rounds == 6
    assert info["wanted"] == 0
    assert reward == pytest.approx(100**0.1)
    market = env._env.market
    assert [spec.policy for spec in market.services] == ["hqfa", "by hand", "pacing"]
    assert market.states[0].accuracy > 0.1


def test_the_episode_goes_on_when_rivals_leave_and_ends_with_the_service(make_market):
    env = ServiceEnv(
        lambda seed: make_market(["alpha", "beta"], seed=seed, targets={"alpha": 0.09}, rounds=3),
        "beta",
        {"alpha": "random"},
        flat=False,
    )
    env.reset(seed=4)
    assert env.step(nobody())[2:4] == (False, False)
    assert env.step(nobody())[2:4] == (False, False)
    assert env.step(nobody())[2:4] == (False, True)
    with pytest.raises(ActionError, match=r"call reset\(\)"):
        env.step(nobody())


def test_a_privileged_rival_sees_the_learning_service_s_offer(make_market):
    env = ServiceEnv(
        lambda seed: make_market(["alpha", "beta"], seed=seed, cores=1), "beta", {"alpha": "oracle"}, flat=False
    )
    env.reset(seed=4)
    # Whatever beta wants at a price alpha can top, alpha may take, and whatever alpha wants it gets.
    action = {"select": np.ones(20, np.int8), "payment": np.ones(20, np.float32)}
    env.step(action)
    market = env._env.market
    assert market.ledger.accounts["alpha"].paid > 0
    assert market.ledger.accounts["alpha"].lapsed < 3_000_000  # no money was held for refused offers


@pytest.mark.parametrize("rivals", [{}, {"alpha": "lcfa"}, {"alpha": "lcfa", "beta": "lcfa", "gamma": "lcfa"}])
def test_every_other_service_needs_a_rival_policy(make_market, rivals):
    with pytest.raises(ValueError, match=r"services are \['alpha', 'beta', 'gamma'\], not 'beta' and the rivals \["):
        ServiceEnv(lambda seed: make_market(seed=seed), "beta", rivals)


@pytest.mark.parametrize(
    ("mechanism", "problem"),
    [
        (MECHANISMS.create("iterated"), "mechanism Iterated takes offers in 3 steps; an environment plays one a round"),
        (
            MECHANISMS.create("posted-price", price_per_sample=0.1),
            "mechanism PostedPrice posts prices of its own; the environments know bids only",
        ),
    ],
)
def test_a_mechanism_that_an_environment_cannot_play_is_named(make_env, mechanism, problem) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        make_env(mechanism=mechanism)


# ---- services that arrive late, or have a budget for the whole run


@pytest.fixture
def late_market(make_market):
    """Beta arrives in round 3 and has a budget of 30 for the whole run."""

    def make(seed: int) -> Market:
        market = make_market(["alpha", "beta"], seed=seed)
        specs = [market.services[0], replace(market.services[1], arrival=3, total_budget=30_000_000)]
        again = make_market(specs, seed=seed)
        market.close()
        return again

    return make


def test_with_services_that_arrive_late_the_environments_are_what_their_libraries_expect(late_market, flat) -> None:
    parallel_api_test(MarketEnv(late_market, flat=flat), num_cycles=30)
    for service, rival in (("beta", "alpha"), ("alpha", "beta")):
        env = ServiceEnv(late_market, service, {rival: "lcfa"})
        check_env(env, skip_render_check=True)


def test_an_agent_joins_when_its_service_arrives(late_market) -> None:
    env = MarketEnv(late_market)
    observations, _ = env.reset(seed=1)
    assert list(observations) == env.agents == ["alpha"]
    assert list(env.step({"alpha": nobody()})[0]) == ["alpha"]
    observations, rewards, terminated, truncated, infos = env.step({"alpha": nobody()})
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


def test_a_service_that_arrives_later_begins_when_it_does(late_market) -> None:
    env = ServiceEnv(late_market, "beta", {"alpha": "lcfa"})
    env.reset(seed=2)
    *_, info = env.step(env.action_space.sample())
    assert info["round"] == 3
