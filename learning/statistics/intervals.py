"""Uncertainty of means and differences: 95 % intervals that cover, paired tests, and Holm's correction.

Runs of different policies under the same market seed share their world, so they are compared in pairs. Means of a few
seeds have Student's t intervals: a bootstrap of so few covers less than it promises (``benchmarks/coverage.py``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import numpy.typing as npt

from fl.arrays import FloatArray
from learning.statistics import SAME, differences, finite

FEWEST = 3  # seeds from which on there is an interval: two say next to nothing about how much they vary


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval."""

    estimate: float
    low: float  # NaN where there are fewer than ``FEWEST`` seeds; so is ``high``
    high: float
    # the p-value of the two-sided test that the truth is 0; NaN where there is no interval
    p: float = float("nan")

    @property
    def known(self) -> bool:
        return self.low <= self.high  # not if they are NaN

    def within(self, lowest: float, highest: float) -> "Interval":
        """Return the interval without what lies outside the limits of the truth: it covers just as often."""
        low, high = (min(max(end, lowest), highest) if self.known else end for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    def text(self, form: str) -> str:
        """Return ``61.20 [58.00, 63.90]``, or the estimate alone; each number in a form such as ``.2f``."""
        ends = f" [{self.low:{form}}, {self.high:{form}}]" if self.known else ""
        return f"{self.estimate:{form}}{ends}"

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def mean_interval(values: npt.ArrayLike) -> Interval:
    """Return the mean of values with its t interval; see ``paired_interval``, against which this is compared with 0."""
    runs = finite("values", values)
    return paired_interval(runs, np.zeros(runs.shape[-1]))


def paired_interval(
    # [training seeds, market seeds]; for a policy that is not trained, [market seeds] or a single row
    first: npt.ArrayLike,
    second: npt.ArrayLike,
) -> Interval:
    """Return the t interval of the mean of ``first - second``, paired by seed.

    Training seeds and market seeds are crossed where every trained agent plays every market. Both are then random
    effects, and the variance of the mean is estimated from the mean squares of a two-way layout without replication,
    (MS_training + MS_market - MS_rest) / cells, with the degrees of freedom of Satterthwaite, "An approximate
    distribution of estimates of variance components", Biometrics Bulletin 2, 1946. Treating all cells as independent
    runs would claim far more certainty than a few training seeds can give.
    """
    difference, rounding = _paired(first, second)
    estimate, size = float(difference.mean()), difference.size
    if abs(estimate) <= rounding:  # differences that cancel each other
        estimate = 0.0
    sides = [count for count in difference.shape if count > 1]
    if not sides or min(sides) < FEWEST:
        return Interval(estimate, float("nan"), float("nan"))
    squares, freedom = _mean_squares(difference)
    if len(sides) == 1:
        variance, effective = squares[0] / size, float(freedom[0])
    else:
        training, market, rest = squares
        # As an estimate of a variance the sum can come out too small, even negative; it is at least its larger part.
        total = max(training + market - rest, training, market)
        variance = total / size
        terms = sum(square**2 / degrees for square, degrees in zip(squares, freedom, strict=True))
        effective = total**2 / terms if terms else float(min(freedom))
    error = variance**0.5
    if error <= rounding:  # differences that are all the same
        error, effective = 0.0, float(min(freedom))
    half = _t_quantile(0.975, effective) * error
    return Interval(estimate, estimate - half, estimate + half, _p_value(estimate, error, effective))


def mean_band(
    runs: npt.ArrayLike,  # [market seeds, points]
    limits: tuple[float, float] = (-inf, inf),  # of the truth
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean over seeds and the ends of its 95 % interval at many points of a curve: mean, low and high.

    At each point it is ``mean_interval`` within the limits; with fewer than ``FEWEST`` seeds the ends are NaN.
    """
    values = np.atleast_2d(finite("runs", runs))
    n, mean = len(values), values.mean(axis=0)
    if n < FEWEST:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = _t_quantile(0.975, n - 1) * values.std(axis=0, ddof=1) / n**0.5
    return mean, np.clip(mean - half, *limits), np.clip(mean + half, *limits)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number: those at or below 5 % hold at that level, all tests taken together.

    Source: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.
    NaN stays NaN and is no test.
    """
    adjusted = [float("nan")] * len(p_values)
    order = sorted((p, place) for place, p in enumerate(p_values) if p == p)
    largest = 0.0
    for rank, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[place] = largest
    return adjusted


def _paired(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[FloatArray, float]:
    """Return the differences [training seeds, market seeds], and what the rounding of the numbers may leave of 0."""
    a, b = (np.atleast_2d(finite(name, runs)) for name, runs in (("first", first), ("second", second)))
    untrained = 1 in (a.shape[0], b.shape[0])
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not (a.shape == b.shape or untrained):
        raise ValueError(f"runs of shapes {np.shape(first)} and {np.shape(second)} cannot be paired by seed")
    return differences(a, b), SAME * float(max(np.abs(a).max(), np.abs(b).max()))


def _mean_squares(values: FloatArray) -> tuple[list[float], list[int]]:
    """Return the mean squares of rows, columns and rest, and their degrees of freedom; of a single line, its own."""
    rows, columns = values.shape
    if 1 in (rows, columns):
        return [float(values.var(ddof=1))], [values.size - 1]
    mean = values.mean()
    row, column = values.mean(axis=1) - mean, values.mean(axis=0) - mean
    rest = values - mean - row[:, None] - column
    freedom = [rows - 1, columns - 1, (rows - 1) * (columns - 1)]
    sums = [columns * (row**2).sum(), rows * (column**2).sum(), (rest**2).sum()]
    return [float(total) / degrees for total, degrees in zip(sums, freedom, strict=True)], freedom


def _t_quantile(share: float, freedom: float) -> float:
    from scipy.special import stdtrit  # takes its time to import

    return float(stdtrit(freedom, share))


def _p_value(estimate: float, error: float, freedom: float) -> float:
    """Return the p-value of the two-sided t test that the truth is 0.

    Differences that are all the same leave no error to compare with; the sign test still has a p-value, 2^(1-n).
    """
    from scipy.special import stdtr  # takes its time to import

    if error == 0:
        return 1.0 if estimate == 0 else float(2.0**-freedom)
    return float(2 * stdtr(freedom, -abs(estimate) / error))
