"""Markets in lockstep as a Gymnasium ``VectorEnv``: each market is the PettingZoo environment, to the last bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

from flmarket.learn import vector_env
from learning.environments.actions import ActionError
from learning.environments.parallel_env import MarketEnv
from learning.lockstep.market_kinds import LockstepError
from learning.lockstep.vector_env import VectorMarketEnv
from learning.seats import MarketFactory
from scenarios.build import market_factory
from scenarios.file.schema import Scenario
from scenarios.loader import builtin_names, load

# Not "crowd" (10,000 clients: too large for a test), and not those whose data lasts, that have secrets, or whose work
# outlasts rounds.
OUTLASTS = {"stragglers", "job-stream", "phones-at-night"}
BUILTIN = sorted({*builtin_names()} - {"afl", "crowd", "changing", "private"} - OUTLASTS)
ROUNDS, STEPS = 14, 34


def surrogate(name: str, *settings: str) -> Scenario:
    scenario = load(name, ["training.backend=surrogate", f"rounds={ROUNDS}", *settings])
    return scenario.model_copy(update={"sweep": {}, "runs": []})


def actions_for(env: VectorMarketEnv, rng: np.random.Generator) -> np.ndarray:
    clients = env.single_action_space.shape[0] // 2
    actions = rng.uniform(-1, 1, (env.num_envs, 2 * clients)).astype(np.float32)
    actions[:, clients:] = np.round(actions[:, clients:])  # a few prices, so that ties are common
    return actions


class Alone:
    """The environments that the rows of a ``VectorMarketEnv`` are compared with."""

    def __init__(self, factories: list[MarketFactory], seed: int) -> None:
        self.envs = [MarketEnv(factory, seed=seed + b, flat=True, padded=True) for b, factory in enumerate(factories)]
        self.seen = [env.reset(seed=seed + b)[0] for b, env in enumerate(self.envs)]

    def step(self, actions: np.ndarray, services: int) -> list[Any]:
        """Step every environment, or reset it if its market is over; return what each step returned, or None."""
        found = []
        for b, env in enumerate(self.envs):
            if env.agents:
                rows = {name: actions[b * services + m] for m, name in enumerate(env.possible_agents)}
                step = env.step({name: self._own(env, name, rows[name]) for name in env.agents})
                self.seen[b] = step[0]
                found.append(step)
            else:
                self.seen[b] = env.reset()[0]
                found.append(None)
        return found

    @staticmethod
    def _own(env: MarketEnv, name: str, row: np.ndarray) -> np.ndarray:
        clients, most = env.action_space(name).shape[0] // 2, len(row) // 2
        return np.concatenate([row[:clients], row[most : most + clients]])


def places(env: MarketEnv, services: int, clients: int, *, totals: bool) -> np.ndarray:
    """Where a market's observation stands in a row of the largest market's size."""
    m, c = len(env.possible_agents), env.market.population.spec.count
    grid = np.arange((services + 2) * clients).reshape(services + 2, clients)
    rest = (services + 2) * clients + np.arange(4 + (totals and env.market.services[0].total_budget is not None))
    return np.concatenate([grid[: m + 1, :c].ravel(), grid[-1, :c], rest])


def assert_same_play(factories: list[MarketFactory], seed: int = 3) -> int:
    """Play both, and return how many markets began anew."""
    env, alone = VectorMarketEnv(factories, seed=seed), Alone(factories, seed)
    observations, infos = env.reset(seed=seed)
    kinds, rng, renewed = env.markets.kinds, np.random.default_rng(0), 0
    services, clients = kinds.services, kinds.clients
    totals = env.single_observation_space.shape[0] > (services + 2) * clients + 4
    for _ in range(STEPS):
        for b, seen in enumerate(alone.seen):
            one = alone.envs[b]
            at = places(one, services, clients, totals=totals)
            for name, values in seen.items():
                row = observations[b * services + one.possible_agents.index(name)]
                assert np.array_equal(row[at], values)
                assert not np.delete(row, at).any()
            acting = [name in one.observed for name in one.possible_agents]
            assert infos["acting"].reshape(-1, services)[b, : len(acting)].tolist() == acting
        actions = actions_for(env, rng)
        steps = alone.step(actions, services)
        observations, rewards, terminated, truncated, infos = env.step(actions)
        assert observations.min() >= 0
        assert observations.max() <= 1
        for b, step in enumerate(steps):
            rows = slice(b * services, (b + 1) * services)
            if step is None:
                renewed += 1
                assert not infos["round"][rows].any()
                assert not rewards[rows].any()
                continue
            for name, reward in step[1].items():
                row = b * services + alone.envs[b].possible_agents.index(name)
                assert (rewards[row], terminated[row], truncated[row]) == (reward, step[2][name], step[3][name])
                for key, value in step[4][name].items():
                    assert infos[key][row] == value, key
    return renewed


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILTIN)
def test_every_built_in_market_is_the_environment(name: str) -> None:
    assert assert_same_play([market_factory(surrogate(name))] * 2) >= 4


def test_services_leave_at_their_targets() -> None:
    easy = [f"services.{name}.target_accuracy={target}" for name, target in (("mnist", 0.3), ("emnist", 0.6))]
    make = market_factory(surrogate("paper", *easy))
    env = VectorMarketEnv([make] * 4)
    env.reset(seed=0)
    ends = np.zeros(env.num_envs, dtype=np.int64)
    rng = np.random.default_rng(0)
    for _ in range(30):
        ends += env.step(actions_for(env, rng))[2]
    assert ends.reshape(4, 3)[:, 0].all()
    assert assert_same_play([make] * 2) >= 2


EARLY_AND_LATE = [
    "services.mnist.target_accuracy=0.3",  # leaves early
    "services.fashion-mnist.arrival=3",
    "services.fashion-mnist.target_accuracy=0.999",  # stays to the end
    "rounds=12",
]


def test_rows_begin_again_when_they_have_ended_and_only_then() -> None:
    """The contract of ``AutoresetMode.NEXT_STEP``, of markets that end in different rounds."""
    factories = [market_factory(surrogate("paper", *EARLY_AND_LATE, f"rounds={n}")) for n in (5, 12, 8)]
    env = VectorMarketEnv(factories)
    env.reset(seed=0)
    rng, ended, begun = np.random.default_rng(0), np.zeros(env.num_envs, dtype=bool), 0
    for _ in range(40):
        before = env.acting.copy()
        _, rewards, terminated, truncated, infos = env.step(actions_for(env, rng))
        assert np.array_equal(infos["round"] == 0, ended)
        assert not (rewards[~before]).any()
        assert not ((terminated | truncated) & ended).any()
        assert not (terminated & truncated).any()
        begun += ended.sum()
        ended = terminated | truncated
    assert begun == (6 + 3 + 4) * 3  # every 6, 13 and 9 steps, three rows each


def test_gymnasium_s_own_wrappers_see_whole_episodes() -> None:
    """Each row's episode is its market's: as many steps, and the sum of its service's rewards."""
    make = market_factory(surrogate("paper", *EARLY_AND_LATE))
    env = RecordEpisodeStatistics(VectorMarketEnv([make] * 2))
    env.reset(seed=5)
    alone = MarketEnv(make, flat=True, padded=True)
    for episode in range(3):
        returns = dict.fromkeys(alone.possible_agents, 0.0)
        alone.reset(seed=5 if episode == 0 else None)
        rng = np.random.default_rng(episode)
        while alone.agents:
            actions = actions_for(env.env, rng)
            _, rewards, terminated, truncated, _ = alone.step(dict(zip(alone.agents, actions, strict=False)))
            returns = {name: total + rewards[name] for name, total in returns.items()}
            *_, infos = env.step(actions)
        assert infos["_episode"].all()
        assert infos["episode"]["l"].tolist() == [12] * 6
        assert infos["episode"]["r"][:3].tolist() == list(returns.values())
        assert list(terminated.values()) == [True, False, False]
        assert list(truncated.values()) == [False, True, True]
        env.step(actions)  # begins again
    normal = NormalizeReward(NormalizeObservation(VectorMarketEnv([make] * 2)))
    normal.reset(seed=5)
    for _ in range(30):
        observations, rewards, *_ = normal.step(actions)
        assert np.isfinite(observations).all()
        assert np.isfinite(rewards).all()


def test_a_list_of_seeds_has_one_for_each_market() -> None:
    env = vector_env([surrogate("paper")], markets=3)
    every, _ = env.reset(seed=7)
    assert np.array_equal(env.reset(seed=[7, 8, 9])[0], every)
    turned, _ = env.reset(seed=np.array([9, 7, 8]))
    assert np.array_equal(turned, np.roll(every.reshape(3, 3, -1), 1, axis=0).reshape(turned.shape))
    drawn, _ = env.reset(seed=[7, None, 9])
    assert np.array_equal(drawn[:3], every[:3])
    assert not np.array_equal(drawn[3:6], every[3:6])
    with pytest.raises(ValueError, match="one for each of the 3 markets, not 9 numbers"):
        env.reset(seed=range(9))


def test_markets_of_other_sizes_fill_their_part_of_a_row() -> None:
    factories = [market_factory(surrogate(name)) for name in ("paper", "quickstart", "scarce")]
    assert assert_same_play([*factories, factories[0]]) >= 4


def test_rows_and_spaces() -> None:
    env = vector_env([surrogate("paper"), surrogate("scarce")], markets=5, seed=1)
    assert env.num_envs == 5 * 8
    observations, infos = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    assert env.single_observation_space.shape == ((8 + 2) * env.markets.kinds.clients + 4,)
    assert infos["acting"].reshape(5, 8).sum(axis=1).tolist() == [3, 8, 3, 8, 3]
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    again, _ = vector_env([surrogate("paper"), surrogate("scarce")], markets=5, seed=1).reset(seed=1)
    assert np.array_equal(again, observations)
    other, _ = env.reset()
    assert not np.array_equal(other, observations)


def test_actions_out_of_the_space_are_refused() -> None:
    env = vector_env([surrogate("paper")], markets=2)
    with pytest.raises(ActionError, match=r"call reset\(\)"):
        env.step(np.zeros((6, 40)))
    env.reset(seed=0)
    with pytest.raises(ActionError, match=r"actions must have the shape \(6, 40\), not \(6, 41\)"):
        env.step(np.zeros((6, 41)))
    for wrong in (1.5, np.nan):
        actions = np.zeros((6, 40))
        actions[4, 7] = wrong
        with pytest.raises(ActionError, match=f"must lie between -1 and 1; value 7 of row 4 is {wrong}$"):
            env.step(actions)
    for others in ("U3", "M8[s]", complex, object):
        with pytest.raises(ActionError, match="actions must be real numbers, not "):
            env.step(np.zeros((6, 40)).astype(others))
    env.step(np.zeros((6, 40)))


def test_actions_may_lie_in_memory_as_they_like() -> None:
    rows, columns = vector_env([surrogate("paper")], markets=2), vector_env([surrogate("paper")], markets=2)
    rows.reset(seed=0)
    columns.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (6, 40))
    for one, other in zip(rows.step(actions)[:4], columns.step(np.asfortranarray(actions))[:4], strict=True):
        assert np.array_equal(one, other)


def test_real_training_is_refused_before_its_images_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLMARKET_DATA", str(tmp_path))
    with pytest.raises(LockstepError, match=r'trains models cannot .* lockstep; use training\.backend = "surrogate"$'):
        vector_env([load("paper")], markets=1)


OUT_OF_RANGE = [("gamma", 0.0), ("gamma", 1.5), ("payment_limit", 1.0), ("payment_limit", np.inf)]


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_options_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        vector_env([surrogate("paper")], markets=1, **{name: value})
