r"""What MAHDRL is worth: trains its variants, plays them and the heuristics in the same worlds, writes CSV and tables.

    python benchmarks/mahdrl.py paper --out docs/results/mahdrl-paper.csv --seeds 5 --markets 10
    python benchmarks/mahdrl.py paper --out docs/results/mahdrl-ablation.csv --seeds 2 --variants all
    python benchmarks/mahdrl.py paper --backend real --set training.eval_samples=2000 --shipped --variants --markets 5 \
        --out docs/results/mahdrl-real.csv
    python benchmarks/mahdrl.py scarce --rotate --out docs/results/mahdrl-scarce.csv --rivals random --seeds 2

Trained agents are kept in --agents and trained only once. One line of the CSV is one service of one run.
"""

import argparse
import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from learning.evaluation import evaluate, lineup
from learning.mahdrl.training import Plan
from learning.statistics import paired_bootstrap
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load
from scenarios.schema import Scenario
from scenarios.train import Training, run

SMALL = {"hidden": (64, 32)}
VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "mahdrl": ("mahdrl", {}),
    "mahdrl-paper": ("mahdrl-paper", {}),
    "mahdrl-frozen": ("mahdrl", {}),  # the agents of "mahdrl", which are told to pay only bids
    "mahdrl-bid": ("mahdrl", {"payments": "bid"}),
    "paper, payments=bid": ("mahdrl-paper", {"payments": "bid"}),
    "paper, network=clients": ("mahdrl-paper", {"network": "clients", **SMALL}),
    "U2": ("mahdrl-paper", {"network": "clients", "payments": "bid", "target": "advantage", **SMALL}),
    "U2, payments=actor": ("mahdrl-paper", {"network": "clients", "target": "advantage", **SMALL}),
    "mahdrl, share=false": ("mahdrl", {"share": False}),
    "mahdrl, control=0": ("mahdrl", {"control": 0.0}),
}
HEURISTICS = ("random", "lcfa", "hqfa", "greedy", "d-first")


def main() -> None:
    arguments = parse()
    scenario = load(arguments.scenario, [f"training.backend={arguments.backend}", *arguments.set])
    shelf = Shelf()
    seats = [service.name for service in scenario.services] if arguments.rotate else [None]
    names = list(VARIANTS) if arguments.variants == ["all"] else arguments.variants
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    scores: dict[str, list[list[float]]] = {}
    with arguments.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["entrant", "training_seed", "market_seed", "service", "auc", "rounds_to_target", "reached"])
        for name in arguments.heuristics:
            scores[name] = [play(writer, scenario, shelf, name, "", {"policy": name}, seats, arguments)]
        if arguments.shipped:
            scores["shipped"] = [play(writer, scenario, shelf, "shipped", "", {"policy": "mahdrl"}, seats, arguments)]
            report(scores)
        for name in names:
            policy, options = VARIANTS[name]
            scores[name] = []
            for seed in range(arguments.seeds):
                base = name.removesuffix("-frozen").replace(" ", "")
                out = arguments.agents / f"{arguments.scenario}-{base}-{seed}.safetensors"
                train(scenario, shelf, policy, options, seed, out, arguments)
                entry = {"policy": policy, "checkpoint": str(out)}
                if name.endswith("-frozen") or (options.get("payments") == "bid" and policy == "mahdrl"):
                    entry["payments"] = "bid"
                scores[name].append(play(writer, scenario, shelf, name, str(seed), entry, seats, arguments))
                file.flush()
                report(scores)


def train(
    scenario: Scenario, shelf: Shelf, policy: Any, options: dict[str, Any], seed: int, out: Path, arguments: Any
) -> None:
    if out.exists():
        return
    plan = Plan(
        episodes=arguments.episodes, epsilon_episodes=min(100, arguments.episodes // 2), evaluate_every=50,
        evaluation_seeds=(900_001,),
    )  # fmt: skip
    training = Training(scenario, policy, options, plan, arguments.rotate, tuple(arguments.rivals))
    start = time.perf_counter()
    run(training, seed, out, shelf, resume=True)
    print(f"trained {out.stem} in {time.perf_counter() - start:.1f} s", flush=True)


def play(
    writer: Any,
    scenario: Scenario,
    shelf: Shelf,
    name: str,
    seed: str,
    entry: dict[str, Any],
    seats: Any,
    arguments: Any,
) -> list[float]:
    """Return the mean AUC of each market seed; a seat means that only its service plays the entrant."""
    options = {key: value for key, value in entry.items() if key != "policy"}
    by_market = np.zeros(arguments.markets)
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
                    values = (f"{auc[at, m]:.6f}", rounds[0, at, m], int(reached[0, at, m]))
                    writer.writerow([name, seed, at, service, *values])
        chosen = slice(None) if seat is None else [results.services.index(seat)]
        by_market += auc[:, chosen].mean(axis=1) / len(seats)
    return [float(value) for value in by_market]


def report(scores: Mapping[str, list[list[float]]]) -> None:
    """Print mean AUC and the worst training seed of each entrant, and the paired difference to mahdrl."""
    print(f"\n{'entrant':26} {'mean AUC':>9} {'worst seed':>10}   first entrant minus this, 95 % interval")
    best = next((name for name in scores if name in VARIANTS or name == "shipped"), None)
    for name, values in sorted(scores.items(), key=lambda item: -np.mean(item[1])):
        worst = min(np.mean(row) for row in values)
        against = ""
        if best not in (None, name) and len(values) in (1, len(scores[best])):
            interval = paired_bootstrap(scores[best], values)
            against = f"{interval.estimate:+.4f} [{interval.low:+.4f}, {interval.high:+.4f}]"
        print(f"{name:26} {np.mean(values):9.4f} {worst:10.4f}   {against}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--agents", type=Path, default=Path("runs/agents"))
    parser.add_argument("--backend", default="surrogate", choices=["surrogate", "real"])
    parser.add_argument("--variants", nargs="*", default=["mahdrl", "mahdrl-paper"])
    parser.add_argument("--heuristics", nargs="*", default=list(HEURISTICS))
    parser.add_argument("--shipped", action="store_true", help="play the agent that comes with flmarket, too")
    parser.add_argument("--seeds", type=int, default=5, help="training seeds")
    parser.add_argument("--markets", type=int, default=10, help="market seeds")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--rotate", action="store_true", help="one learner at a time, in every seat")
    parser.add_argument("--rivals", nargs="*", default=[], help="what the others play; evaluated against the first")
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
