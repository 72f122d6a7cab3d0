"""Markets drawn at random, to train and to tune policies on: never those that policies are compared in.

Each is a scenario of the surrogate. Drawn are: services, clients and cores; budgets, equal or not, some with a limit
for the run; sizes and EMDs of data, and how closely prices follow them; the DQI's parameters; whether the DQI and
rivals' bids are seen in full; data sets, and so learning curves; targets in and out of reach.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from fl.arithmetic.elementary import exp, log
from fl.arithmetic.ordered_sums import mean
from fl.arithmetic.streams import stream
from fl.backends import BACKENDS
from flmarket.core.errors import InputError
from scenarios.file.schema import Scenario

ROUNDS = 40  # N of a drawn market: half of the paper's, by which time most of what can be learned has been

SERVICES, CLIENTS, CORES = (1, 12), (8, 80), (1, 4)

ALONE = 0.08  # share of the markets with a single service, in which no offer can be outbid

BUDGETS = (2.0, 30.0)  # A service's budget, in mean bids

LIMITED, LIMITS = 0.15, (0.3, 0.9)
"""Share of the markets in which a service's money for the whole run is limited, and to which part of its budgets."""


class Family(NamedTuple):
    """Data sets that clients have of one size."""

    # of each data set, the target accuracy, which is often out of reach, and Omega
    targets: Mapping[str, tuple[float, int]]
    least: tuple[int, int]  # range of the smallest data size, images


LARGE = Family({"mnist": (0.97, 60), "fashion-mnist": (0.85, 100), "emnist-digits": (0.97, 30)}, (40, 160))
SMALL = Family({"digits": (0.95, 60), "strokes": (0.97, 30), "scribbles": (0.88, 100)}, (12, 60))
"""Data sets with a learning curve. The small ones are learned from few images, and by other curves."""

FEW_IMAGES = 0.25  # share of the markets of the small data sets

AGAINST, STEEPEST = 0.15, 8.0
"""Share of the markets in which worse data costs much more, and how much at most: data of the largest EMD costs as much
on top as this many of the smallest data sets."""

MOST_EMD = 1.6  # data with ten labels can have an EMD of up to 1.8

PRICE = 0.025  # money per image. Policies see prices relative to each other, so that one level is as good as another.


def drawn(seed: int, count: int, backend: str = "surrogate") -> list[Scenario]:
    """Return markets 0 to ``count`` - 1 of a seed; a longer list begins like a shorter one."""
    if backend not in (curves := [name for name, it in BACKENDS.items() if not it.trains]):
        raise InputError(f"backend {backend!r}: drawn markets have learning curves; choose {' or '.join(curves)}")
    return [draw(seed, index, backend) for index in range(count)]


def draw(seed: int, index: int, backend: str = "surrogate") -> Scenario:
    """Return one market, ``drawn-SEED-INDEX``."""
    rng = stream(seed, "drawn", index)
    services = SERVICES[0] if rng.random() < ALONE else _count(rng, (SERVICES[0] + 1, SERVICES[1]))
    clients, cores = _count(rng, CLIENTS), int(rng.integers(CORES[0], CORES[1] + 1))
    family = SMALL if rng.random() < FEW_IMAGES else LARGE
    sizes, emds = _sizes(rng, family.least), _emds(rng)
    # At most so much is taken off for EMD that the worst data is not free. Some clients ask more for lopsided data.
    slope = -_log_uniform(rng, 0.3, STEEPEST) if rng.random() < AGAINST else float(rng.uniform(-0.3, 0.9))
    cost = {"per_sample": PRICE, "per_emd": round(slope * PRICE * sizes[0] / emds[-1], 6)}
    if rng.random() < 0.3:
        cost["noise"] = round(float(rng.uniform(0.05, 0.6)), 3)
    mean_bid = PRICE * mean(np.array(sizes)) - cost["per_emd"] * mean(np.array(emds))
    market = {"bids": "own"} if rng.random() < 0.15 else {}
    if rng.random() < 0.15:
        market["dqi"] = "rank"
    return Scenario.model_validate(
        {
            "name": f"drawn-{seed}-{index}",
            "description": "Drawn at random, to train on.",
            "rounds": ROUNDS,
            "dqi": "published" if rng.random() < 0.5 else "fitted",
            "clients": {"count": clients, "cores": cores, "data_size": sizes, "emd": emds, "cost": cost},
            "market": market,
            "training": {"backend": backend},
            "services": _services(rng, services, family, mean_bid),
        }
    )


def _count(rng: Generator, limits: tuple[int, int]) -> int:
    """Draw a number whose logarithm is uniform: twice as many make as much of a difference at any size."""
    low, high = limits
    return min(int(_log_uniform(rng, low, high + 1)), high)


def _log_uniform(rng: Generator, low: float, high: float) -> float:
    return float(exp(rng.uniform(log(low), log(high))))


def _sizes(rng: Generator, range_: tuple[int, int]) -> list[int]:
    """Draw what data sizes are drawn from, ascending: one size for all, or up to five, evenly spaced."""
    least, levels = _count(rng, range_), int(rng.integers(2, 6))
    if rng.random() < 0.1:
        return [2 * least]
    step = float(rng.uniform(0.3, 1.3)) * least
    return [round(least + step * level) for level in range(levels)]


def _emds(rng: Generator) -> list[float]:
    """Draw what EMDs are drawn from, ascending: two to five, evenly spaced."""
    least, levels = float(rng.uniform(0.0, 0.9)), int(rng.integers(2, 6))
    step = float(rng.uniform(0.1, (MOST_EMD - least) / (levels - 1)))
    return [round(least + step * level, 2) for level in range(levels)]


def _services(rng: Generator, count: int, family: Family, mean_bid: float) -> list[dict[str, object]]:
    """Draw the services, all with a policy that is replaced when the market is played."""
    level, equal = _log_uniform(rng, *BUDGETS), rng.random() < 0.4
    easier = float(rng.uniform(0.0, 0.08)) if rng.random() < 0.5 else 0.0
    limited = rng.random() < LIMITED
    found: list[dict[str, object]] = []
    for index in range(count):
        means = level if equal else float(np.clip(level * _log_uniform(rng, 1 / 3, 3.0), *BUDGETS))
        dataset = list(family.targets)[int(rng.integers(len(family.targets)))]
        target, base = family.targets[dataset]
        budget = round(means * mean_bid, 2)
        limit = {"total_budget": round(float(rng.uniform(*LIMITS)) * ROUNDS * budget, 2)} if limited else {}
        found.append(
            {
                "name": f"service-{index}",
                "dataset": dataset,
                "budget": budget,
                **limit,
                "target_accuracy": round(target - easier, 3),
                "reward_base": base,
                "policy": "random",
            }
        )
    return found
