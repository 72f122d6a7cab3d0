r"""What MAHDRL is worth: trains agents, plays them and the heuristics in the same worlds, and writes CSV and tables.

    python benchmarks/mahdrl.py paper --seeds 5 --markets 20 --out docs/results/mahdrl-surrogate.csv
    python benchmarks/mahdrl.py paper --seeds 5 --agents-of "mahdrl" "mahdrl horizon=1" --out parts.csv
    python benchmarks/mahdrl.py scarce --rotate --rivals hqfa random --agents-of "mahdrl" "mahdrl | payments=bid" \
        --seeds 5 --out scarce.csv

An agent is named by its policy and the hyper-parameters that differ from the defaults; what follows a bar are options
of the policy when it plays. Trained agents are kept in --agents and trained only once, so that an interrupted benchmark
resumes where it was; --trained plays others beside them. One line of the CSV is one service of one run.
"""

import argparse
import csv
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mahdrl_table import MEASURES, summary

from learning.evaluation import evaluate, lineup
from learning.mahdrl.training import Plan
from scenarios.build import Shelf, build_federation, build_market
from scenarios.file.schema import Scenario
from scenarios.loader import load
from scenarios.running.seeds import parse_seeds
from scenarios.train import Training, run
from tui.commands.arguments import parse_options

HEURISTICS = ("random", "lcfa", "hqfa", "greedy", "ucb", "oort", "pacing", "dearest", "d-first", "oracle")


@dataclass(frozen=True)
class Agent:
    """An agent, as its name describes it.

    Attributes:
        name: the name that was given.
        policy: ``mahdrl`` or ``mahdrl-paper``.
        trained: hyper-parameters of the training.
        played: options of the policy when it plays.
    """

    name: str
    policy: Any
    trained: Mapping[str, Any]
    played: Mapping[str, Any]

    @classmethod
    def parse(cls, name: str) -> "Agent":
        before, _, after = name.partition("|")
        policy, *options = before.split()
        return cls(name, policy, parse_options(options), parse_options(after.split()))

    def file(self, folder: Path, scenario: str, seed: int) -> Path:
        options = "".join(f"-{key}={value}" for key, value in self.trained.items()).replace(" ", "")
        return folder / f"{scenario}-{self.policy}{options}-seed{seed}.safetensors"


def main() -> None:
    arguments = parse()
    changes = [f"training.backend={arguments.backend}", *arguments.set]
    scenario, played = load(arguments.scenario, changes), load(arguments.scenario, [*changes, *arguments.played_on])
    shelf = Shelf()
    seats = [service.name for service in scenario.services] if arguments.rotate else [None]
    agents = [Agent.parse(name) for name in arguments.agents_of]
    seeds = parse_seeds(arguments.seeds)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["entrant", "training_seed", "market_seed", "service", *MEASURES, "reached"])
        for name in arguments.heuristics:
            play(writer, played, shelf, name, "", {"policy": name}, seats, arguments)
        for seed, path in enumerate(arguments.trained):
            entry = {"policy": "mahdrl", "checkpoint": str(path)}
            play(writer, played, shelf, "mahdrl", str(seed), entry, seats, arguments)
        for agent in agents:
            for seed in seeds:
                out = agent.file(arguments.agents, scenario.name, seed)
                train(scenario, shelf, agent, seed, out, arguments)
                entry = {"policy": agent.policy, "checkpoint": str(out), **agent.played}
                play(writer, played, shelf, agent.name, str(seed), entry, seats, arguments)
                file.flush()
            print(summary(arguments.out), flush=True)
    print(summary(arguments.out))


def train(scenario: Scenario, shelf: Shelf, agent: Agent, seed: int, out: Path, arguments: Any) -> None:
    plan = Plan(
        episodes=arguments.episodes, epsilon_episodes=min(100, arguments.episodes // 2), evaluate_every=50,
        evaluation_seeds=(900_001,), together=arguments.together,
    )  # fmt: skip
    training = Training((scenario,), agent.policy, agent.trained, plan, arguments.rotate, tuple(arguments.rivals))
    start = time.perf_counter()
    run(training, seed, out, shelf, resume=True, workers=arguments.workers)
    print(f"{out.stem}: trained in {time.perf_counter() - start:.1f} s", flush=True)


def play(
    writer: Any,
    scenario: Scenario,
    shelf: Shelf,
    name: str,
    seed: str,
    entry: dict[str, Any],
    seats: Any,
    arguments: Any,
) -> None:
    """Play all market seeds; with a seat, only its service plays the entrant."""
    options = {key: value for key, value in entry.items() if key != "policy"}
    for seat in seats:
        services = [service.name for service in scenario.services]
        rival = arguments.rivals[0] if arguments.rivals else "random"
        policies = {s: entry["policy"] if seat in (None, s) else rival for s in services}
        given = {s: options if seat in (None, s) else {} for s in services}

        def market(at: int) -> Any:
            return build_market(scenario, at, build_federation(scenario, at, shelf, workers=arguments.workers))

        results = evaluate(market, {name: lineup(policies, given)}, range(arguments.markets))
        auc, (rounds, reached) = results.auc()[0], results.rounds_to_target()
        for at in range(arguments.markets):
            for m, service in enumerate(results.services):
                if seat in {None, service}:
                    final = results.reported[0, at, -1, m]
                    values = (f"{auc[at, m]:.6f}", f"{final:.6f}", rounds[0, at, m], int(reached[0, at, m]))
                    writer.writerow([name, seed, at, service, *values])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--agents", type=Path, default=Path("runs/agents"))
    parser.add_argument("--backend", default="surrogate", choices=["surrogate", "real"])
    parser.add_argument("--agents-of", nargs="*", default=["mahdrl", "mahdrl-paper"], help="agents to train")
    parser.add_argument("--heuristics", nargs="*", default=list(HEURISTICS))
    parser.add_argument(
        "--trained", nargs="*", type=Path, default=[], help="agents that are there already, by training seed from 0"
    )
    parser.add_argument("--seeds", default="5", help="training seeds: 5 (0 to 4), 0,3,7 or 0..9")
    parser.add_argument("--markets", type=int, default=10, help="number of market seeds (default: 10)")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--rotate", action="store_true", help="services take turns to learn; evaluate in every seat")
    parser.add_argument("--together", type=int, default=1, help="with --rotate: how many learn in the same episode")
    parser.add_argument("--rivals", nargs="*", default=[], help="policies of the others; evaluations use the first")
    parser.add_argument("--set", nargs="*", default=[], help="KEY=VALUE in the scenario")
    parser.add_argument("--played-on", nargs="*", default=[], help="KEY=VALUE in the scenario of evaluations only")
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.trained and "mahdrl" in arguments.agents_of:
        parser.error("--trained agents play as mahdrl; leave mahdrl out of --agents-of")
    return arguments


if __name__ == "__main__":
    main()
