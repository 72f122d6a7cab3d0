"""Odd scenarios as environments: what the libraries' own checkers say of them, of their copies and of their pickles."""

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flmarket
from fl.arithmetic.streams import stream

pytest.importorskip("pettingzoo")

import gymnasium
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.test.state_test import state_test
from pettingzoo.utils.conversions import parallel_to_aec
from stable_baselines3.common.env_checker import check_env as check_sb3_env

PAPER = {"training.backend": "surrogate", "rounds": 6, "clients.count": 6}
ODD: dict[str, dict[str, Any]] = {
    "late and early": {"services.mnist.target_accuracy": 0.11, "services.fashion-mnist.arrival": 3},
    "all late": {f"services.{name}.arrival": n for n, name in enumerate(("mnist", "fashion-mnist", "emnist"), 2)},
    "one client, one core, two rounds": {"clients.count": 1, "clients.cores": 1, "rounds": 2},
    "budgets for the whole run": {f"services.{name}.total_budget": 25 for name in ("mnist", "fashion-mnist", "emnist")},
    "clients that leave and come late": {"clients.departure_rate": 0.4, "timeline.deadline": 6.0},
    "uniform price": {"market.mechanism": "uniform-price", "clients.cores": 1},
    "fair queue": {"market.mechanism": "fair-queue", "clients.cores": 1},
    "clients that learn what to ask": {"clients.behaviour": {"kind": "adaptive"}},
    "clients that learn beside others": {
        "clients.groups": [{"name": "learners", "count": 3, "behaviour": {"kind": "adaptive"}}]
    },
    "secrets": {"market.bids": "own", "market.dqi": "rank", "clients.cost.noise": 0.2},
    "rivals that learn": {"services.fashion-mnist.policy": "ucb", "services.emnist.policy": "mahdrl"},
    "privileged rivals": {"services.fashion-mnist.policy": "oracle", "services.emnist.policy": "contribution"},
    "budgets that end": {
        "interventions": [
            {"round": 3, "key": "services.mnist.budget", "value": 0},
            {"round": 4, "key": "clients.offline", "value": [0, 1, 2]},
        ]
    },
}
FAST = "late and early"
odd = pytest.mark.parametrize("name", [it if it == FAST else pytest.param(it, marks=pytest.mark.slow) for it in ODD])


@cache
def scenario(name: str) -> flmarket.Scenario:
    return flmarket.load("paper", {**PAPER, **ODD[name]})


def new(env: Any) -> Any:
    return env


def copied(env: Any) -> Any:
    return deepcopy(env)


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))  # noqa: S301 - our own


WAYS: list[Callable[[Any], Any]] = [copied, pickled]


def episode(env: Any, seed: int | None = None, *, begun: bool = False) -> list[Any]:
    """Return what an environment shows in the rest of an episode, whatever it is, with actions drawn from a seed."""
    seen = [] if begun else [env.reset(seed=seed)]
    rng, ended = stream(seed or 0, "actions"), 0
    while ended < 2:  # a vector environment begins again
        if hasattr(env, "possible_agents"):
            actions = {name: drawn(env.action_space(name), rng) for name in env.agents}
        else:
            actions = drawn(env.action_space, rng)
        seen.append(env.step(actions))
        _, _, terminated, truncated, _ = seen[-1]
        ended += 2 if np.isscalar(terminated) and (terminated or truncated) else 0
        ended += 2 if hasattr(env, "possible_agents") and not env.agents else 0
        ended += int(np.any(terminated) or np.any(truncated)) if np.ndim(terminated) else 0
    return seen


def drawn(space: Any, rng: np.random.Generator) -> np.ndarray:
    return np.round(rng.uniform(-1, 1, space.shape), 1).astype(np.float32)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return np.array_equal(one, other)


@odd
@pytest.mark.parametrize(
    "made", [copied, pytest.param(pickled, marks=pytest.mark.slow), pytest.param(new, marks=pytest.mark.slow)]
)
def test_the_libraries_checkers_pass(name: str, made: Callable[[Any], Any]) -> None:
    for padded in (False, True):

        def env(padded: bool = padded) -> Any:
            begun = flmarket.parallel_env(scenario(name), flat=True, padded=padded)
            begun.reset(seed=1)
            return made(begun)

        parallel_api_test(env(), num_cycles=20)
        parallel_seed_test(env, num_cycles=20)
        with warnings.catch_warnings():
            # PettingZoo advises against free agent names, and against a render method that cannot answer.
            for advice in ("We recommend agents", "Agent's", "The class of", ".*render", ".*values are equal"):
                warnings.filterwarnings("ignore", message=f"{advice}.*", category=UserWarning)
            api_test(made(parallel_to_aec(env())), num_cycles=20)
            seed_test(lambda: made(parallel_to_aec(env())), num_cycles=20)
            state_test(parallel_to_aec(env()), env())
    alone = flmarket.service_env(scenario(name), "mnist")
    alone.reset(seed=1)
    check_env(made(alone), skip_render_check=True)
    check_sb3_env(made(alone))


@odd
def test_copies_and_pickles_are_independent_at_any_moment(name: str) -> None:
    market = scenario(name)
    envs = [flmarket.parallel_env(market, flat=True, padded=padded) for padded in (False, True)]
    envs.append(flmarket.service_env(market, "mnist"))
    if name in (FAST, "budgets for the whole run", "uniform price"):
        envs.append(flmarket.vector_env(market, markets=2))
    for env in envs:
        for made in WAYS:
            untouched = episode(made(env), 5)  # of one that has played nothing, or another episode
            other = made(env)
            assert equal(episode(env, 5), untouched)
            episode(other, 6)
            assert equal(episode(env, 5), untouched)
            assert equal(episode(other, 5), untouched)
            env.reset(seed=7)
            rng = stream(0, "first")
            actions = (
                {name: drawn(env.action_space(name), rng) for name in env.agents}
                if hasattr(env, "possible_agents")
                else drawn(env.action_space, rng)
            )
            _, _, terminated, truncated, _ = env.step(actions)
            if np.isscalar(terminated) and (terminated or truncated):
                continue
            first, second = made(env), made(made(env))
            rest = episode(first, 5, begun=True)
            assert equal(rest, episode(env, 5, begun=True))
            assert equal(rest, episode(second, 5, begun=True))


@odd
def test_a_copied_service_has_rivals_of_its_own(name: str) -> None:
    """Three episodes in a row, of which a copy plays the second, and each is the same."""
    env = flmarket.service_env(scenario(name), "emnist")
    first = episode(env, 3)
    episode(deepcopy(env), 4)
    assert equal(episode(env, 3), first)


class NotesAll(flmarket.Policy):
    """Pays more in each round that it has seen, and does not say that it remembers."""

    def __init__(self, context: flmarket.PolicyContext) -> None:
        self.market, self.rounds = context, []

    def act(self, observation: flmarket.Observation) -> flmarket.Offer:
        self.rounds.append(observation.round)
        best = np.argmin(observation.own_bids)
        return flmarket.Offer([best], [observation.own_bids[best] + 0.1 * len(self.rounds)])


def test_a_rival_that_does_not_say_what_it_remembers_is_copied_with_it() -> None:
    flmarket.policy("notes-all")(NotesAll)
    env = flmarket.service_env(flmarket.load("paper", PAPER | {"services.emnist.policy": "notes-all"}), "mnist")
    env.reset(seed=1)
    for _ in range(3):
        env.step(np.zeros(12, np.float32))
    copies = [deepcopy(env), pickled(env)]
    found = [env.step(np.zeros(12, np.float32)), *(it.step(np.zeros(12, np.float32)) for it in copies)]
    notes = [it._rivals.policies["emnist"].rounds for it in (env, *copies)]
    assert notes == [[1, 2, 3, 4]] * 3
    assert notes[0] is not notes[1]
    assert equal(found[0], found[1])
    assert equal(found[0], found[2])


def test_real_training_is_copied_in_the_middle_of_an_episode() -> None:
    small = {"training.local_epochs": 1, "training.eval_samples": 50, "clients.data_size": [30, 40], "rounds": 3}
    env = flmarket.parallel_env(flmarket.load("quickstart", small), flat=True)
    env.reset(seed=2)
    env.step({name: np.ones(env.action_space(name).shape, np.float32) for name in env.agents})
    first, second = deepcopy(env), pickled(env)
    rest = episode(first, 1, begun=True)
    assert equal(rest, episode(second, 1, begun=True))
    assert equal(rest, episode(env, 1, begun=True))
    assert rest[-1][4]["digits"]["served"] > 0
    for it in (env, first, second):
        it.close()


@pytest.mark.slow
def test_a_pickle_continues_in_another_process(tmp_path: Path) -> None:
    env = flmarket.service_env(scenario("rivals that learn"), "mnist")
    env.reset(seed=1)
    env.step(np.zeros(12, np.float32))
    (tmp_path / "env").write_bytes(pickle.dumps(env))
    code = "import pathlib, pickle; print(pickle.loads(pathlib.Path('env').read_bytes()).step([0.0] * 12)[1:])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == str(env.step(np.zeros(12, np.float32))[1:])


def test_gymnasium_makes_the_environment_of_a_service_by_its_name() -> None:
    name = "flmarket.environments:flmarket/Service-v0"
    env = gymnasium.make(name, scenario=scenario(FAST), service="emnist", seed=4)
    assert env.spec.id == "flmarket/Service-v0"
    alone = episode(flmarket.service_env(scenario(FAST), "emnist"), 3)
    assert equal(episode(env, 3), alone)
    assert equal(episode(env.spec.make(), 3), alone)
    assert equal(episode(pickled(env), 3), alone)
