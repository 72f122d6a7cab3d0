"""``flmarket train``: resumed after a kill it gives the same bytes; what does not fit is refused; agents play."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fl.errors import InputError
from learning.mahdrl.training import Plan
from scenarios.build import Shelf, agents_of
from scenarios.loader import load
from scenarios.train import Training, parse_options, run

ROOT = Path(__file__).resolve().parents[2]


def small(*overrides, **changes):
    scenario = load("paper", ["training.backend=surrogate", "rounds=8", *overrides])
    plan = Plan(episodes=6, epsilon_episodes=3, evaluate_every=2, evaluation_seeds=(900_001,))
    return Training(**{"scenario": scenario, "policy": "mahdrl", "options": {}, "plan": plan} | changes)


def files(out):
    described = json.loads(out.with_suffix(".json").read_text())
    del described["about"]  # the git revision, which may change while tests run
    return out.read_bytes(), out.with_suffix(".csv").read_bytes(), described


def command(policy, out, *extra):
    words = ["train", "paper", "--backend", "surrogate", "--set", "rounds=5", "--policy", policy, "--episodes", "24"]
    code = "from tui.cli import main; main()"
    return [sys.executable, "-c", code, *words, "--evaluate-every", "3", "--out", str(out), "-q", *extra]


@pytest.mark.parametrize("policy", ["mahdrl", "mahdrl-paper"])
def test_resumed_after_a_kill_it_gives_the_same_bytes(tmp_path, policy):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    whole, killed = tmp_path / "whole.safetensors", tmp_path / "killed.safetensors"
    subprocess.run(command(policy, whole), env=environment, check=True)
    process = subprocess.Popen(command(policy, killed), env=environment)
    states = killed.with_suffix(".training")
    deadline = time.monotonic() + 120
    while not list(states.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert list(states.glob("*.json"))
    assert not killed.exists(), "killed too late to show anything"
    subprocess.run(command(policy, killed, "--resume"), env=environment, check=True)
    assert files(killed) == files(whole)


def test_a_longer_training_goes_on_where_a_short_one_ended(tmp_path):
    short, whole = tmp_path / "short.safetensors", tmp_path / "whole.safetensors"
    training = small()
    run(training, 3, whole, Shelf())
    brief = Plan(episodes=4, epsilon_episodes=3, evaluate_every=2, evaluation_seeds=(900_001,))
    run(small(plan=brief), 3, short, Shelf())
    run(training, 3, short, Shelf(), resume=True)
    assert files(short) == files(whole)


def test_another_training_is_not_resumed(tmp_path):
    out = tmp_path / "agent.safetensors"
    run(small(), 3, out, Shelf())
    with pytest.raises(InputError, match="there is a training already"):
        run(small(), 3, out, Shelf())
    with pytest.raises(InputError, match=r"trained with plan.seed = 3, not 4"):
        run(small(), 4, out, Shelf(), resume=True)
    with pytest.raises(InputError, match=r"trained with provenance.scenario_hash"):
        run(small("clients.count=21"), 3, out, Shelf(), resume=True)


def test_a_damaged_state_is_not_resumed(tmp_path):
    out = tmp_path / "agent.safetensors"
    run(small(), 3, out, Shelf())
    last = max(out.with_suffix(".training").glob("*.safetensors"))
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.raises(InputError, match="truncated, corrupt"):
        run(small(), 3, out, Shelf(), resume=True)


def test_taking_turns_against_rivals(tmp_path):
    rows = []
    training = small(rotate=True, rivals=("hqfa", "lcfa"))
    run(training, 0, tmp_path / "agent.safetensors", Shelf(), tell=rows.append)
    assert [row.episode for row in rows if row.phase == "train"] == [1, 2, 3, 4, 5, 6]
    assert {row.phase for row in rows} == {"train", "evaluate"}


@pytest.mark.parametrize("policy", ["mahdrl", "mahdrl-paper"])
def test_all_services_leave_in_the_first_round(tmp_path, policy):
    easy = [f"services.{name}.target_accuracy=0.01" for name in ("mnist", "fashion-mnist", "emnist")]
    run(small(*easy, policy=policy), 0, tmp_path / "agent.safetensors", Shelf())


@pytest.mark.parametrize("policy", ["mahdrl", "mahdrl-paper"])
def test_one_client_nobody_can_afford(tmp_path, policy):
    poor = [f"services.{name}.budget=0.5" for name in ("mnist", "fashion-mnist", "emnist")]
    run(small("clients.count=1", *poor, policy=policy), 0, tmp_path / "agent.safetensors", Shelf())


def test_hyper_parameters_are_checked():
    assert parse_options(["share=false", "scale=2", "payments=bid", "hidden=[8, 4]"]) == {
        "share": False,
        "scale": 2,
        "payments": "bid",
        "hidden": (8, 4),
    }
    with pytest.raises(InputError, match="must be KEY=VALUE"):
        parse_options(["share"])
    wrong = [
        ({"shar": 1}, "has no such hyper-parameter; it has share, payments"),
        ({"share": 1}, "share: input should be a valid boolean, not 1"),
        ({"batch": 0}, "batch: input should be greater than or equal to 1, not 0"),
        ({"payments": "much"}, "payments: input should be 'plan' or 'bid', not 'much'"),
    ]
    for options, message in wrong:
        with pytest.raises(InputError, match=message):
            run(small(options=options), 0, Path("nowhere.safetensors"), Shelf())


def test_the_digest_of_an_agent_is_part_of_what_a_run_depends_on(tmp_path):
    scenario = load("paper", ["services.mnist.policy=mahdrl"])
    (shipped,) = agents_of(scenario).values()
    out = tmp_path / "agent.safetensors"
    run(small(), 0, out, Shelf())
    own = load("paper", ["services.mnist.policy=mahdrl", f"services.mnist.checkpoint={out}"])
    assert list(agents_of(own)) == ["agent/mnist"]
    assert agents_of(own)["agent/mnist"] != shipped
    assert agents_of(load("paper")) == {}


def test_a_sweep_is_no_single_market_to_train_on(tmp_path):
    swept = small().scenario.model_copy(update={"sweep": {"clients.cores": (1, 2)}})
    with pytest.raises(InputError, match="has a sweep"):
        run(small(scenario=swept), 0, tmp_path / "agent.safetensors", Shelf())


def test_who_learns_in_an_episode():
    seats = ("a", "b", "c", "d")
    alone = Plan(seats=seats)
    assert [alone.learners(episode) for episode in (1, 2, 3, 4)] == [("b",), ("c",), ("d",), ("a",)]
    assert Plan().learners(1) == (), "nobody named: all learn"
    pairs = [Plan(seats=seats, together=2).learners(episode) for episode in range(200)]
    assert all(len(set(pair)) == 2 for pair in pairs)
    assert len(set(pairs)) == 6, "every pair comes up"
    assert set(Plan(seats=seats, together=9).learners(1)) == set(seats)
