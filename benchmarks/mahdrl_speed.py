"""Speed of MAHDRL in CPU seconds of one process: trainings on the surrogate, updates, and decisions.

    python benchmarks/mahdrl_speed.py [--episodes 20]

CPU time, not wall time, so that a busy machine matters less; everything runs on one core.
"""

import argparse
import tempfile
import time
from itertools import product
from pathlib import Path

import torch

from fl.arithmetic.streams import stream
from flmarket.core.errors import InputError
from learning.mahdrl.paper import PaperLearner, PaperSettings
from learning.policy import POLICIES
from learning.seats import context
from learning.training import agent_files
from learning.training.loop import MarketShape, Plan
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load
from scenarios.train import AgentTraining, run

SERVICES = ("mnist", "fashion-mnist", "emnist")
ROUNDS = 40


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
            run(AgentTraining((scenario,), policy, {}, plan), 0, Path(folder) / "agent.safetensors", Shelf())
            spent = time.process_time() - start
        print(f"{policy}: {spent:.1f} s for {episodes} episodes; 200 x 80 x 3: {spent * 200 / episodes:.0f} s")
    together, apart = updates(SERVICES), sum(updates((name,)) for name in SERVICES)
    print(f"mahdrl-paper, one update of three agents: stacked {together * 1e3:.2f} ms, one by one {apart * 1e3:.2f} ms")
    print(f"  ratio {apart / together:.2f}")
    for policy in ("mahdrl", "mahdrl-paper"):
        tensors, description = agent_files.read(agent_files.shipped(policy), "agent")
        each = sum(values.size for values in tensors.values()) // len(description["agents"] or [policy])
        print(f"{policy}, the agent that comes with flmarket: {each:,} parameters for each service")
    for backend, policy in product(("surrogate", "real"), ("mahdrl", "mahdrl-paper")):
        try:
            decisions(backend, policy)
        except InputError as error:  # no real images here
            print(f"{backend}, {policy}: not measured: {error}")


def updates(services: tuple[str, ...]) -> float:
    """Return how many seconds one update of all agents of ``mahdrl-paper`` takes."""
    shape = MarketShape(SERVICES, 20, 2, 80, dict.fromkeys(SERVICES, 60.0))
    agents = PaperLearner(services, shape, 0, PaperSettings())
    rng = stream(0, "speed")
    for _ in range(100):
        for agent in range(len(services)):
            fields = agents._replay.fields.items()
            agents._replay.add(agent, **{name: rng.random(values.shape[2:]) for name, values in fields})
    start = time.process_time()
    for _ in range(200):
        agents.update(rng)
    return (time.process_time() - start) / 200


def decisions(backend: str, policy: str) -> None:
    """Print what a shipped agent's decisions cost, compared with the rest of a round of the paper's market."""
    scenario = load("paper", [f"training.backend={backend}", "training.eval_samples=2000", f"rounds={ROUNDS}"])
    federation = build_federation(scenario, 0, Shelf(), workers=1)
    market = build_market(scenario, 0, federation)
    agents = {spec.name: POLICIES.create(policy, context(market, spec.name)) for spec in market.services}
    deciding = 0.0
    start = time.process_time()
    while not market.finished:
        seen = market.open_round()
        began = time.process_time()
        offers = {name: agents[name].act(observation) for name, observation in seen.items()}
        deciding += time.process_time() - began
        market.close_round(offers)
    rest = time.process_time() - start - deciding
    federation.close()
    share = deciding / (deciding + rest)
    deciding, rest = deciding / ROUNDS * 1e3, rest / ROUNDS * 1e3
    print(
        f"{backend}, {policy}: three decisions {deciding:.2f} ms ({3e3 / deciding:.0f} a second), "
        f"the rest of the round {rest:.1f} ms: {share:.1%} of it all"
    )


if __name__ == "__main__":
    main()
