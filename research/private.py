"""The worth of secrets: how well bids and DQI reveal the data, and which policies win where they do not.

    python research/private.py --out research/results/private.csv [--print]

On the surrogate. The first table is the share of clients whose data a rule recovers that knows the scenario.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from experiment import SURROGATE, fill, gain, growing, markdown, plus_minus, starred

from des.clients.population import Population, Qualities
from des.cost import costs
from fl.arrays import FloatArray, IntArray
from learning.evaluation import evaluate, everywhere
from learning.statistics.intervals import mean_interval
from scenarios.build import market_factory
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

UNTOLD = "mahdrl, curve = false"
POLICIES = ("d-first", "dearest", "pacing", "mahdrl", UNTOLD, "mahdrl-single", "hqfa", "outbid", "random", "lcfa")
OPTIONS: Mapping[str, Mapping[str, Any]] = {UNTOLD: {"curve": False}}
"""Options of entrants that have any, which follow the policy's name."""


def scenario_of(market: str) -> Scenario:
    """Return the scenario of a market."""
    base, changes = MARKETS[market]
    return load(base, [SURROGATE, *changes])


def main() -> None:
    arguments = growing(__doc__).parse_args()
    if not arguments.print:
        tasks = [(market, policy) for policy in POLICIES for market in PLAYED]
        fill(arguments.out, ["market", "policy", "seed", "auc"], tasks, _play, arguments.jobs)
    print(told(SEEDS), played(arguments.out), sep="\n\n")


# ---- what bids and DQI reveal

# From a bid: the pair (D, EMD) whose cost is nearest to it, as a ratio. From all bids of a client, where they are
# public: a client's noise is one factor for all services, so the pair that best explains the bids by one factor. From
# what the service sees of the DQI: the pair whose DQI is nearest, or that has the rank.
SOURCES = ("by the bid", "by all its bids", "by the DQI")


class Kinds(NamedTuple):
    """The kinds of data that clients can have for a service: size, EMD, cost without noise (micro-units), and DQI."""

    size: FloatArray
    emd: FloatArray
    cost: FloatArray
    dqi: FloatArray


def told(seeds: int) -> str:
    """Return the Markdown table of what a rule recovers: the data size, and size and EMD."""
    rows = []
    for market in MARKETS:
        shares = recovered(market, range(seeds))
        rows.append([market, *("" if one is None else f"{100 * one[0]:.1f} %, {100 * one[1]:.1f} %" for one in shares)])
    return markdown(("market", *SOURCES), rows)


def recovered(market: str, seeds: Iterable[int]) -> list[tuple[float, float] | None]:
    """Return, for each source, the shares of clients whose size, and whose size and EMD, it gives away."""
    scenario = scenario_of(market)
    make = market_factory(scenario, workers=0)
    right: list[list[tuple[float, float]]] = [[] for _ in SOURCES]
    for seed in seeds:
        play = make(seed)
        people = play.population
        play.close()
        kinds = [kinds_of(people, m) for m in range(len(scenario.services))]
        for number in range(1, scenario.rounds + 1):
            for source, shares in enumerate(hits(people.draw(number), kinds, scenario)):
                right[source] += shares
    return [(fmean(one for one, _ in found), fmean(two for _, two in found)) if found else None for found in right]


def hits(world: Qualities, kinds: list[Kinds], scenario: Scenario) -> list[list[tuple[float, float]]]:
    """Return for each source and service the shares of a round's clients whose size, and whose pair, it gives away."""
    factors = [np.log(world.bid[m][:, None] / one.cost) for m, one in enumerate(kinds)]  # [C, kinds]
    found: list[list[tuple[float, float]]] = [[] for _ in SOURCES]
    for m, one in enumerate(kinds):
        last = len(one.dqi) - 1
        if scenario.market.dqi == "rank":
            by_dqi = one.dqi.argsort()[np.minimum((world.seen[m] * len(one.dqi)).astype(np.int64), last)]
        else:
            by_dqi = np.abs(world.seen[m][:, None] - one.dqi).argmin(axis=1)
        guesses: list[IntArray | None] = [np.abs(factors[m]).argmin(axis=1), None, by_dqi]
        if scenario.market.bids == "public":
            apart = [
                np.abs(factors[m][:, :, None] - other[:, None, :]).min(axis=2)
                for at, other in enumerate(factors)
                if at != m
            ]
            possible = np.abs(np.expm1(factors[m])) <= scenario.clients.cost.noise + 1e-6
            guesses[1] = np.where(possible, sum(apart), np.inf).argmin(axis=1)
        for shares, guess in zip(found, guesses, strict=True):
            if guess is not None:
                sizes = one.size[guess] == world.data_size[m]
                shares.append((float(sizes.mean()), float((sizes & (one.emd[guess] == world.emd[m])).mean())))
    return found


def kinds_of(people: Population, m: int) -> Kinds:
    """Return the kinds of data that come up in forty rounds: with twenty clients or more, all."""
    rows = {
        (int(world.data_size[m, c]), float(world.emd[m, c]), float(world.dqi[m, c]))
        for world in map(people.draw, range(1, 41))
        for c in range(people.spec.count)
    }
    size, emd, dqi = (np.array(column) for column in zip(*sorted(rows), strict=True))
    [group] = people.spec.groups
    return Kinds(size, emd, costs(group.cost, size, emd, np.float64(1.0), np.float64(1.0)), dqi)


# ---- who wins


def _play(task: tuple[str, str]) -> list[tuple[str, str, int, str]]:
    return list(play(*task, range(SEEDS)))


def play(market: str, policy: str, seeds: Iterable[int]) -> Iterable[tuple[str, str, int, str]]:
    """Yield a line of the CSV for each seed."""
    make, entrant = market_factory(scenario_of(market), workers=0), everywhere(name_of(policy), OPTIONS.get(policy))
    for seed in seeds:
        results = evaluate(make, {policy: entrant}, [seed])
        yield market, policy, seed, f"{results.auc()[0, 0].mean():.6f}"


def name_of(entrant: str) -> str:
    """Return the name of the policy that an entrant plays."""
    return entrant.partition(",")[0]


# All services play one policy; the score is the AUC (mean accuracy over the rounds), averaged over the services. All
# policies and markets meet the same data under one seed, so differences are paired by seed.
def played(path: Path) -> str:
    """Return the Markdown table of a file: a policy's mean AUC, and what it lacks to the baseline, in each market."""
    wide = pd.read_csv(path).pivot_table("auc", ["market", "seed"], "policy")
    rows = [
        [starred(policy, name_of(policy)), *(cell(wide.loc[market], policy) for market in PLAYED)]
        for policy in POLICIES
    ]
    return markdown(("policy", *PLAYED), rows)


def cell(runs: pd.DataFrame, policy: str) -> str:
    """Return a mean with its 95 % t interval for the baseline, for others with the paired difference from it."""
    if policy == BASELINE:
        return plus_minus(mean_interval(runs[policy].to_numpy())).removeprefix("+")
    return f"{runs[policy].mean():.4f}, {plus_minus(gain(runs, policy, BASELINE))}"


if __name__ == "__main__":
    main()
