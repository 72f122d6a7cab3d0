"""Finds the local training with which the best heuristics reach the paper's targets at about the paper's rounds.

    python research/regime.py fashion-mnist 1:0.04 1:0.05 --seeds 3 --policy d-first    # candidates as epochs:rate

One service is alone in the market of `paper-fitted` for 80 rounds. Test images have no part in the choice.
"""

from dataclasses import replace
from statistics import mean
from time import process_time

from experiment import command_line

from des.market import Market
from learning.play_round import play
from learning.statistics import RoundsToTarget
from scenarios.build import Shelf, build_federation, build_policy, population_spec, service_spec, timeline
from scenarios.loader import load

CANDIDATES = {
    "mnist": ("1:0.03", "1:0.04", "1:0.05"),
    "emnist-digits": ("1:0.025", "1:0.03", "1:0.04"),
    "fashion-mnist": ("3:0.05", "3:0.03", "2:0.05", "2:0.03", "2:0.025", "1:0.05"),
}

EVALUATED = 6_000
"""Validation images, at most: all of MNIST's and Fashion-MNIST's, a quarter of EMNIST's."""


def curve(dataset: str, epochs: int, rate: float, policy: str, seed: int, shelf: Shelf) -> tuple[list[float], float]:
    """Return the accuracy on validation images after each round, and the target."""
    scenario = load("paper-fitted")
    service = next(it for it in scenario.services if it.dataset == dataset)
    service = service.model_copy(update={"policy": policy})
    regime = {"local_epochs": epochs, "learning_rate": rate, "momentum": 0.0, "batch_size": 10, "by_dataset": {}}
    training = scenario.training.model_copy(update=regime | {"validation": 0.1, "eval_samples": EVALUATED})
    scenario = scenario.model_copy(update={"services": (service,), "training": training})
    federation = build_federation(scenario, seed, shelf, workers=0)
    # No accuracy reaches 2, so that the service stays to the last round.
    spec = replace(service_spec(scenario, service), target_accuracy=2.0)
    accuracies: list[float] = []
    try:
        market = Market(population_spec(scenario), [spec], timeline(scenario), scenario.rounds, federation, seed)
        policies = {service.name: build_policy(scenario, service)}
        play(market, policies, [lambda report: accuracies.append(report.services[0].accuracy)])
    finally:
        federation.close()
    return accuracies, service.target_accuracy


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("dataset", choices=CANDIDATES)
    parser.add_argument("candidates", nargs="*", help="epochs:rate")
    parser.add_argument("--policy", action="append", help="repeatable; d-first if none is given")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    shelf = Shelf()
    print("| data set | E | rate | policy | rounds to target, by seed | mean | AUC | last ten rounds | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for candidate in options.candidates or CANDIDATES[options.dataset]:
        epochs, rate = candidate.split(":")
        for policy in options.policy or ["d-first"]:
            began, curves, areas, lasts = process_time(), [], [], []
            for seed in range(options.seeds):
                accuracies, target = curve(options.dataset, int(epochs), float(rate), policy, seed, shelf)
                curves.append(accuracies)
                areas.append(mean(accuracies))
                lasts.append(mean(accuracies[-10:]))
            found = RoundsToTarget.of_curves(curves, target)
            shown = ", ".join(str(n) if met else "never" for n, met in zip(*found, strict=True))
            print(
                f"| {options.dataset} | {epochs} | {rate} | {policy} | {shown} | {found.text()} "
                f"| {mean(areas):.4f} | {mean(lasts):.4f} | {process_time() - began:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
