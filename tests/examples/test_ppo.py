"""The examples that train all services of a market with PPO: independent, and with a critic that sees all of them."""

import math
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium", reason="needs the extra rl")

from safetensors.torch import load_file

import flmarket
from learning.evaluation import evaluate, everywhere
from scenarios.build import market_factory
from scenarios.loader import dumps, load

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ["training.backend=surrogate", "clients.count=6", "rounds=4", "clients.data_size=[100, 200]"]


@pytest.fixture
def ippo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "ippo", raising=False)  # it registers its policy again
    import ippo

    return ippo


@pytest.fixture
def market(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(dumps(load("paper", SMALL)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ippo", "mappo"])
def test_it_trains_plays_and_repeats_itself(name: str, market: Path, tmp_path: Path) -> None:
    """The same command gives the same numbers, and the same bytes of tensors."""

    def run(out: Path) -> str:
        command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--scenario", str(market), "--updates", "2"]
        command += ["--markets", "3", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stderr
        return done.stdout

    printed = run(tmp_path / "first.safetensors")
    assert printed == run(tmp_path / "second.safetensors")
    assert (tmp_path / "first.safetensors").read_bytes() == (tmp_path / "second.safetensors").read_bytes()
    loss, report = printed.splitlines()
    assert re.fullmatch(r"3 services, 6 clients; loss of the last update -?\d+\.\d{6}", loss)
    number = r"[+-]?\d\.\d{4}"
    assert re.fullmatch(rf"{name}: AUC {number}, random {number}, difference {number} ± {number}; n = 3", report)
    tensors = load_file(tmp_path / "first.safetensors")
    assert {key.partition(".")[0] for key in tensors} == {"actor", "critic"}
    assert all(torch.isfinite(value).all() for value in tensors.values())
    width = flmarket.vector_env(flmarket.load(market), markets=1).single_observation_space.shape[0]
    assert tensors["critic.0.weight"].shape[1] == (width if name == "ippo" else 3 * width)


def test_what_was_trained_plays_as_a_plug_in_as_it_did_in_lockstep(
    ippo: ModuleType, market: Path, tmp_path: Path
) -> None:
    scenario = flmarket.load(market)
    width = flmarket.vector_env(scenario, markets=1).single_observation_space.shape[0]
    actor, critic, _ = ippo.train(scenario, lambda seen: seen, width, updates=1, seed=1)
    ippo.save(tmp_path / "agent.safetensors", actor, critic)
    own = ippo.held_out_auc(actor, flmarket.vector_env(scenario, markets=2, seed=ippo.HELD_OUT), scenario.rounds)
    playing = {"ippo": everywhere("ippo", {"checkpoint": str(tmp_path / "agent.safetensors")})}
    found = evaluate(market_factory(scenario), playing, range(ippo.HELD_OUT, ippo.HELD_OUT + 2)).auc()[0].mean(axis=-1)
    np.testing.assert_allclose(found, own, atol=1e-6)


def test_losses_are_finite_and_networks_move(ippo: ModuleType, market: Path) -> None:
    scenario = flmarket.load(market)
    width = flmarket.vector_env(scenario, markets=1).single_observation_space.shape[0]
    untrained, *_ = ippo.train(scenario, lambda seen: seen, width, updates=0, seed=1)
    trained, _, losses = ippo.train(scenario, lambda seen: seen, width, updates=3, seed=1)
    assert len(losses) == 3
    assert all(map(math.isfinite, losses))
    assert any((a != b).any() for a, b in zip(untrained.parameters(), trained.parameters(), strict=True))


def test_advantages_by_hand(ippo: ModuleType) -> None:
    """Two rounds, of which the second ends; a third in which the row does not act."""
    reward, value = torch.tensor([[1.0], [2.0], [9.0]]), torch.tensor([[0.5], [1.0], [9.0]])
    ends, acting = torch.tensor([[False], [True], [False]]), torch.tensor([[True], [True], [False]])
    found = ippo.generalised(reward, value, torch.tensor([7.0]), ends, acting)
    second = 2.0 - 1.0
    first = 1.0 + 0.95 * 1.0 - 0.5 + 0.95 * 0.9 * second
    assert found[:, 0].tolist() == pytest.approx([first, second, 0.0])


def test_clients_that_are_not_there_are_not_wanted_and_do_not_count(ippo: ModuleType) -> None:
    torch.manual_seed(0)
    actor = ippo.Actor(services=2, clients=3)
    seen = torch.rand(4, 3 * 4 + 4)
    seen[:, 9:12] = torch.tensor([1.0, 0.0, 1.0])  # who is available
    wanted, payment = torch.tensor([[1.0, 0.0, 0.0]]).expand(4, -1), torch.zeros(4, 3)
    log, entropy = actor.log_probability(seen, wanted, payment)
    other, _ = actor.log_probability(seen, wanted + torch.tensor([0.0, 1.0, 0.0]), payment)
    assert log.tolist() == other.tolist()
    assert (entropy <= 2 * math.log(2) + 1e-6).all()


def test_actions_are_within_the_environment_s_limits(ippo: ModuleType) -> None:
    action = ippo.encode(torch.tensor([[1.0, 0.0]]), torch.tensor([[-3.0, 0.5]]))
    np.testing.assert_array_equal(action, np.array([[1.0, -1.0, -1.0, 0.5]], dtype=np.float32))
