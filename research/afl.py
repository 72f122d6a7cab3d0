"""Plays the built-in market `afl`, in which eight buyers bid for 10,000 owners of data, and prints its page's table.

    python research/afl.py tune                                     # the levels in the scenario
    python research/afl.py play --out research/results/afl.csv      # the table; with --print it plays nothing

The page is docs/auction-based-fl.md. Levels are tuned with training seeds in a market of a tenth of the owners and of
the budgets: one rule after the other, all of them twice, each against the seven other methods. The price of an image,
which is the level of rtb-mcpc, is what all paid with the levels found.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from experiment import command_line, fill, growing, markdown

import flmarket
from learning.play_round import play
from scenarios.build import Shelf, build
from scenarios.file.schema import Scenario
from scenarios.loader import points

TRAINING, PASSES, SEEDS = (100, 101), 2, 5
WHOLE, FEW = 10_000, 1_000  # owners
HEADS = (
    "method",
    "images, millions",
    "test accuracy, %",
    "money",
    "n",
    "all owners: images, millions",
    "accuracy",
    "money",
)
GRIDS = {  # around half-way costs of 2.75
    "rtb-const": (2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    "rtb-rand": (4.0, 6.0, 8.0, 10.0, 12.0, 16.0),
    "rtb-lin": (2.9, 3.2, 3.6, 4.1, 4.7, 5.5),
    "rtb-ortb": (9.0, 11.5, 14.0, 17.0, 20.0, 25.0),
}
COLUMNS = ("owners", "seed", "point", "service", "method", "images", "spent", "accuracy")
TENTH = {
    "clients.count": 1_000,
    "clients.groups": [{"name": str(it), "count": 100, "data_size": [it]} for it in range(500, 5_001, 500)],
    "services.*.budget": 1_500,
    "services.*.total_budget": 1_500,
}


def rows(scenario: Scenario, seed: int) -> Iterator[tuple[str, str, int, float, float]]:
    """Play a run, and yield what each service has: its method, images, money spent, and test accuracy in the end."""
    setup = build(scenario, seed, Shelf(), workers=0)
    images: dict[str, int] = {}
    spent: dict[str, int] = {}
    accuracy: dict[str, float] = {}

    def note(report: Any) -> None:
        for it in report.services:
            images[it.service] = images.get(it.service, 0) + (it.samples or 0)
            spent[it.service] = spent.get(it.service, 0) + it.spent
            accuracy[it.service] = it.test_accuracy

    try:
        play(setup.market, setup.policies, [note])
    finally:
        setup.federation.close()
    for it in scenario.services:
        yield it.name, it.policy, images[it.name], spent[it.name] / 1e6, accuracy[it.name]


def tune() -> None:
    """Print the levels: of each rule the one that bought most images in training, and what an image cost."""
    found = {rule: grid[len(grid) // 2] for rule, grid in GRIDS.items()} | {"rtb-mcpc": 0.0015}
    for rule, grid in [*GRIDS.items()] * PASSES:
        bought = {level: bought_by(rule, found | {rule: level}) for level in grid}
        found[rule] = max(bought, key=lambda level: bought[level])
        print(rule, {level: round(number) for level, number in bought.items()}, flush=True)
    paid = pd.DataFrame([it for seed in TRAINING for it in rows(market(found), seed)])
    print(f"{found}; an image cost {paid[3].sum() / paid[2].sum():.6f}")


def bought_by(rule: str, levels: Mapping[str, float]) -> float:
    """Return the images that a rule buys, on average over training seeds."""
    return float(np.mean([it[2] for seed in TRAINING for it in rows(market(levels), seed) if it[1] == rule]))


def market(levels: Mapping[str, float]) -> Scenario:
    """Return the first point of the market, with a tenth of its owners and of its money, and other levels."""
    plain = flmarket.load("afl", {**TENTH, "runs": []})
    chosen = {
        f"services.{it.name}.policy_options": {
            "level": levels[it.policy],
            **({"c": 2.75} if it.policy == "rtb-ortb" else {}),
        }
        for it in plain.services
        if it.policy in levels
    }
    return flmarket.load("afl", {**TENTH, "runs": [], **chosen})


def tasks() -> list[tuple[str, ...]]:
    """Return all runs: market, seed and point."""
    seeds = [*((FEW, seed) for seed in range(SEEDS)), (WHOLE, 0)]
    return [(str(owners), str(seed), str(point)) for owners, seed in seeds for point in range(8)]


def played(task: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return the rows of a run."""
    owners, seed, point = task
    scenario = points(flmarket.load("afl", TENTH if int(owners) == FEW else {}))[int(point)].scenario
    return [(*task, *it) for it in rows(scenario, int(seed))]


def table(frame: pd.DataFrame) -> str:
    """Return the table of methods in both markets, most images first: means over data sets, intervals over seeds."""
    whole = frame.groupby(["owners", "seed"]).filter(lambda it: it["point"].nunique() == 8)
    means = whole.groupby(["owners", "method", "seed"])[["images", "accuracy", "spent"]].mean()
    few, all_of_them = means.loc[FEW], means.loc[WHOLE]
    order = few["images"].groupby("method").mean().sort_values(ascending=False).index
    return markdown(HEADS, [[f"`{it}`", *cells(few.loc[it]), *cells(all_of_them.loc[it])] for it in order])


def cells(own: pd.DataFrame) -> list[str]:
    """Return what the table says of a method in a market, and of how many seeds."""
    scaled = own["images"] / 1e6, 100 * own["accuracy"], own["spent"]
    forms = (".3f", ".1f", ",.0f")
    if len(own) == 1:
        return [format(it.iloc[0], form) for it, form in zip(scaled, forms, strict=True)]
    texts = [flmarket.mean_interval(it.to_numpy()).text(form) for it, form in zip(scaled, forms, strict=True)]
    return [*texts, str(len(own))]


def main() -> None:
    parser = command_line(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("tune")
    commands.add_parser("play", parents=[growing(None)], add_help=False)
    given = parser.parse_args()
    if given.command == "tune":
        tune()
        return
    if not given.print:
        fill(given.out, COLUMNS, tasks(), played, given.jobs)
    print(table(pd.read_csv(given.out)))


if __name__ == "__main__":
    main()
