"""Speed of MAHDRL in CPU seconds of one process: trainings on the surrogate, stacked against per-agent updates.

    python benchmarks/mahdrl_speed.py [--episodes 20]

CPU time, not wall time, so that a busy machine does not show; everything runs on one core.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from fl.streams import stream
from learning.mahdrl import learner, paper
from learning.mahdrl.training import Plan
from learning.policy import PolicyContext, create
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load
from scenarios.train import Training, run

SERVICES = ("mnist", "fashion-mnist", "emnist")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=20)
    episodes = parser.parse_args().episodes
    torch.set_num_threads(1)
    scenario = load("paper", ["training.backend=surrogate"])
    plan = Plan(
        episodes=episodes, epsilon_episodes=max(1, episodes // 2), evaluate_every=episodes, evaluation_seeds=(1,)
    )
    for policy in ("mahdrl", "mahdrl-paper"):
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            run(Training(scenario, policy, {}, plan), 0, Path(folder) / "agent.safetensors", Shelf())
            spent = time.process_time() - start
        print(f"{policy}: {spent:.1f} s for {episodes} episodes; 200 x 80 x 3: {spent * 200 / episodes:.0f} s")
    together, apart = updates(SERVICES), sum(updates((name,)) for name in SERVICES)
    print(f"mahdrl-paper, one update of three agents: stacked {together * 1e3:.2f} ms, one by one {apart * 1e3:.2f} ms")
    print(f"  ratio {apart / together:.2f}")
    decision()


def updates(services: tuple[str, ...]) -> float:
    """Return seconds of one update of all agents of ``mahdrl-paper``."""
    shape = learner.Shape(SERVICES, 20, 2, 80, dict.fromkeys(SERVICES, 60.0))
    agents = paper.Learner(services, shape, 0, paper.Settings())
    rng = stream(0, "speed")
    for _ in range(100):
        for agent in range(len(services)):
            fields = agents._replay.fields.items()
            agents._replay.add(agent, **{name: rng.random(values.shape[2:]) for name, values in fields})
    start = time.process_time()
    for _ in range(200):
        agents._update(rng)
    return (time.process_time() - start) / 200


def decision() -> None:
    """Print what a decision of the shipped agent costs."""
    scenario = load("paper", ["training.backend=surrogate"])
    market = build_market(scenario, 0, build_federation(scenario, 0, Shelf()))
    seen = list(market.open_round().values())
    agents = {name: create(name, PolicyContext("mnist", 3, 20, 2, 80, 20.0, 0.97, 60.0)) for name in ("mahdrl", "hqfa")}
    for name, agent in agents.items():
        start = time.process_time()
        for _ in range(200):
            for observation in seen:
                agent.act(observation)
        spent = (time.process_time() - start) / 200
        print(f"{name}: {spent * 1e3:.2f} ms for the three decisions of a round")
    assert np.isfinite(spent)


if __name__ == "__main__":
    main()
