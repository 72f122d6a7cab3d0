"""Coverage of 95 % intervals: those of `learning.statistics.intervals`, and the percentile bootstrap for comparison.

    python benchmarks/coverage.py --repeat 20000  # prints two tables in Markdown

A share of 95 % has a standard error of 0.3 points with 4,000 repetitions.
"""

import argparse
from collections.abc import Callable

import numpy as np

from fl.arithmetic.streams import stream
from fl.arrays import FloatArray
from learning.statistics.intervals import FEWEST, paired_interval

Ends = tuple[float, float]

SIZES = (2, 3, 5, 10, 20, 50)
# Values are normal with mean 0. In the crossed design each trained agent plays each market: a value is the sum of an
# agent's effect, a market's effect and the rest, each of variance 1 (or, in the second case, an agent's effect of 0.1:
# a method that hardly varies with its training seed). The percentile bootstrap resamples both kinds of seeds.
CROSSED = ((2, 10), (3, 10), (5, 10), (5, 20), (10, 20), (5, 50))
RESAMPLES = 2_000


def t_ends(values: FloatArray) -> Ends:
    """The ends of flmarket's interval of a mean; NaN where it has none."""
    found = paired_interval(values, np.zeros(values.shape[-1]))
    return found.low, found.high


def percentile_ends(values: FloatArray, rng: np.random.Generator) -> Ends:
    """The ends of the percentile bootstrap interval of a mean."""
    rows, columns = np.atleast_2d(values).shape
    weights = [rng.multinomial(size, [1 / size] * size, RESAMPLES) / size for size in (rows, columns)]
    means = np.einsum("rj,rj->r", weights[0] @ np.atleast_2d(values), weights[1])
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def interquartile_mean(values: FloatArray) -> float:
    """The mean of the middle half (Agarwal et al., "Deep reinforcement learning at the edge ...", NeurIPS 2021)."""
    cut = len(values) // 4
    return float(np.sort(values)[cut : len(values) - cut].mean())


def studentised_ends(values: FloatArray, statistic: Callable[[FloatArray], float]) -> Ends:
    """The ends of the studentised bootstrap interval of a statistic, with the jackknife's error (Efron, 1981)."""
    estimate, error = statistic(values), jackknife(values, statistic)
    if len(values) < FEWEST:
        return np.nan, np.nan
    ratios = []
    for drawn in values[stream(0, "bootstrap").integers(len(values), size=(500, len(values)))]:
        if own := jackknife(drawn, statistic):  # not if all drawn values are equal
            ratios.append((statistic(drawn) - estimate) / own)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return estimate - high * error, estimate - low * error


def jackknife(values: FloatArray, statistic: Callable[[FloatArray], float]) -> float:
    """The standard error of a statistic."""
    n = len(values)
    left = np.array([statistic(np.delete(values, i)) for i in range(n)])
    return float(((n - 1) / n * ((left - left.mean()) ** 2).sum()) ** 0.5)


def coverage(draw: Callable[[], FloatArray], ends: Callable[[FloatArray], Ends], repeat: int) -> str:
    """The share of intervals that cover 0, in per cent; or that there are none."""
    found = [ends(draw()) for _ in range(repeat)]
    if any(low != low for low, _ in found):
        return "no interval"
    return f"{100 * np.mean([low <= 0 <= high for low, high in found]):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=4_000, help="simulations for each cell")
    parser.add_argument("--slow", type=int, default=500, help="simulations for each cell of the studentised bootstrap")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)

    def percentile(values: FloatArray) -> Ends:
        return percentile_ends(values, rng)

    def studentised(values: FloatArray) -> Ends:
        return studentised_ends(values, interquartile_mean)

    print("| market seeds | t interval | percentile bootstrap | interquartile mean, studentised bootstrap |")
    print("|---|---|---|---|")
    for n in SIZES:
        cells = [
            coverage(lambda n=n: rng.normal(size=n), ends, repeat)  # type: ignore[misc]
            for ends, repeat in (
                (t_ends, arguments.repeat),
                (percentile, arguments.repeat),
                (studentised, arguments.slow),
            )
        ]
        print(f"| {n} | {' | '.join(cells)} |", flush=True)
    print("\n| training seeds x market seeds | agents' sd | t interval, crossed | percentile bootstrap, crossed |")
    print("|---|---|---|---|")
    for rows, columns in CROSSED:
        for spread in (1.0, 0.1):

            def draw(rows: int = rows, columns: int = columns, spread: float = spread) -> FloatArray:
                agents, markets = spread * rng.normal(size=(rows, 1)), rng.normal(size=(1, columns))
                return agents + markets + rng.normal(size=(rows, columns))

            cells = [coverage(draw, ends, arguments.repeat) for ends in (t_ends, percentile)]
            print(f"| {rows} x {columns} | {spread} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
