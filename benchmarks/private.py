r"""What secrets are worth: how well bids and DQI tell the data, and who wins where they do not. On the surrogate.

    python benchmarks/private.py --out docs/results/private.csv        # plays what the file lacks, prints the tables
    python benchmarks/private.py --out docs/results/private.csv --print

The first table is the share of clients whose data a rule recovers that knows the scenario: from a bid, the pair (D,
EMD) whose cost is nearest to it, as a ratio; from what services see of the DQI, the pair whose DQI is nearest, or that
has the rank. It counts all clients of all rounds and services. In the second, all services play one policy; the score
is the AUC (mean accuracy over the rounds), averaged over the services. All policies and markets meet the same data under
one seed, so differences are paired by seed. One line of the CSV is one run.
"""

import argparse
import csv
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from des.population import Population
from fl.arrays import FloatArray
from learning.evaluation import evaluate, everywhere
from learning.intervals import mean_interval, paired_interval
from learning.policy import is_privileged
from scenarios.build import Shelf, build_federation, build_market
from scenarios.file.schema import Scenario
from scenarios.loader import load

SEEDS = 20
BASELINE = "d-first"

MARKETS = {
    "paper": ("paper", ()),
    "noise 0.1": ("paper", ("clients.cost.noise=0.1",)),
    "noise 0.2": ("paper", ("clients.cost.noise=0.2",)),
    "noise 0.5": ("paper", ("clients.cost.noise=0.5",)),
    "private": ("private", ()),
}
"""Markets: a built-in scenario, and what is set in it. The last one also hides rivals' bids, and blurs the DQI."""

PLAYED = ("paper", "noise 0.2", "noise 0.5", "private")
"""Markets of the second table."""

POLICIES = ("d-first", "dearest", "pacing", "mahdrl", "hqfa", "outbid", "random", "lcfa")


def scenario_of(market: str) -> Scenario:
    """Return the scenario of a market."""
    base, changes = MARKETS[market]
    return load(base, ["training.backend=surrogate", *changes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--print", action="store_true", help="play nothing")
    arguments = parser.parse_args()
    if not arguments.print:
        fill(arguments.out, arguments.jobs)
    print(told(SEEDS), played(arguments.out), sep="\n\n")


# ---- what bids and DQI tell


def told(seeds: int) -> str:
    """Return the Markdown table of what a rule recovers."""
    lines = ["| market | size, by the bid | size and EMD, by the bid | size, by the DQI | size and EMD, by the DQI |"]
    lines.append("| --- |" + " --- |" * 4)
    for market in MARKETS:
        shares = recovered(market, range(seeds))
        lines.append(f"| {market} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |")
    return "\n".join(lines)


def recovered(market: str, seeds: Iterable[int]) -> tuple[float, float, float, float]:
    """Return the shares of clients whose size, and whose pair, follow from the bid, and the same from the DQI."""
    scenario = scenario_of(market)
    right = [np.concatenate(found, axis=None) for found in zip(*(hits(scenario, seed) for seed in seeds), strict=True)]
    by_bid, pair_by_bid, by_dqi, pair_by_dqi = (float(one.mean()) for one in right)
    return by_bid, pair_by_bid, by_dqi, pair_by_dqi


def hits(scenario: Scenario, seed: int) -> tuple[FloatArray, ...]:
    """Return for each round, service and client whether size and pair follow from the bid, and from the DQI."""
    market = build_market(scenario, seed, build_federation(scenario, seed, Shelf(), workers=0))
    people, ranked = market.population, scenario.market.dqi == "rank"
    market.close()
    kinds = [kinds_of(people, m) for m in range(len(scenario.services))]
    found: list[list[FloatArray]] = [[], [], [], []]
    for number in range(1, scenario.rounds + 1):
        world = people.draw(number)
        for m, (size, emd, cost, dqi) in enumerate(kinds):
            by_bid = np.abs(np.log(world.bid[m][:, None] / cost)).argmin(axis=1)
            if ranked:
                by_dqi = np.argsort(dqi)[np.minimum((world.seen[m] * len(dqi)).astype(np.int64), len(dqi) - 1)]
            else:
                by_dqi = np.abs(world.seen[m][:, None] - dqi).argmin(axis=1)
            for at, guess in enumerate((by_bid, by_dqi)):
                sizes = size[guess] == world.data_size[m]
                found[2 * at].append(sizes)
                found[2 * at + 1].append(sizes & (emd[guess] == world.emd[m]))
    return tuple(np.concatenate(one) for one in found)


def kinds_of(people: Population, m: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the data sizes, EMDs, costs without noise, and DQI of all kinds of data that clients have for a service."""
    worlds = [people.draw(number) for number in range(1, 41)]
    rows = {
        (int(world.data_size[m, c]), float(world.emd[m, c]), float(world.dqi[m, c]))
        for world in worlds
        for c in range(people.spec.count)
    }
    size, emd, dqi = (np.array(column) for column in zip(*sorted(rows), strict=True))
    return size, emd, np.rint(1e6 * (people.spec.cost_per_sample * size - people.spec.cost_per_emd * emd)), dqi


# ---- who wins


def fill(out: Path, jobs: int) -> None:
    """Play what the file lacks."""
    done = set()
    if out.exists():
        done = set(pd.read_csv(out)[["market", "policy"]].itertuples(index=False, name=None))
    todo = [(market, policy) for policy in POLICIES for market in PLAYED if (market, policy) not in done]
    fresh = not out.exists()
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", newline="") as file, ProcessPoolExecutor(jobs) as pool:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(["market", "policy", "seed", "auc"])
        for rows in pool.map(_play, todo):
            writer.writerows(rows)
            file.flush()


def _play(task: tuple[str, str]) -> list[tuple[str, str, int, str]]:
    return list(play(*task, range(SEEDS)))


def play(market: str, policy: str, seeds: Iterable[int]) -> Iterable[tuple[str, str, int, str]]:
    """Yield a line of the CSV for each seed."""
    scenario, shelf = scenario_of(market), Shelf()
    for seed in seeds:
        results = evaluate(
            lambda at: build_market(scenario, at, build_federation(scenario, at, shelf, workers=0)),
            {policy: everywhere(policy)},
            [seed],
        )
        yield market, policy, seed, f"{results.auc()[0, 0].mean():.6f}"


def played(path: Path) -> str:
    """Return the Markdown table of a file: a policy's mean AUC, and what it lacks to the baseline, in each market."""
    wide = pd.read_csv(path).pivot_table("auc", ["market", "seed"], "policy")
    lines = ["| policy | " + " | ".join(PLAYED) + " |", "| --- |" + " --- |" * len(PLAYED)]
    for policy in POLICIES:
        star = " \\*" if is_privileged(policy) else ""
        lines.append(f"| {policy}{star} | " + " | ".join(cell(wide.loc[market], policy) for market in PLAYED) + " |")
    return "\n".join(lines)


def cell(rows: pd.DataFrame, policy: str) -> str:
    """Return a mean with its 95 % t interval for the baseline, for others with the paired difference from it."""
    own, base = rows[policy].to_numpy(), rows[BASELINE].to_numpy()
    if policy == BASELINE:
        found = mean_interval(own)
        return f"{found.estimate:.4f} ± {found.high - found.estimate:.4f}"
    found = paired_interval(own, base)
    return f"{own.mean():.4f}, {found.estimate:+.4f} ± {found.high - found.estimate:.4f}"


if __name__ == "__main__":
    main()
