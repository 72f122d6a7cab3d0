"""Statistics to judge policies by: what a learning curve amounts to, and how certain a difference is.

Runs of different policies under the same market seed share their world, so they are compared in pairs. All resampling
draws from a keyed stream: the same values give the same interval.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fl.arrays import FloatArray, IntArray
from fl.streams import stream

Statistic = Callable[[FloatArray], float]
"""From values [n] to one number."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes:
        estimate: the statistic of all the data.
        low, high: ends of the interval.
        level: the share of such intervals that should cover the truth.
    """

    estimate: float
    low: float
    high: float
    level: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval is on one side of zero."""
        return self.low > 0 or self.high < 0


def mean(values: FloatArray) -> float:
    """Return the mean."""
    return float(values.mean())


def interquartile_mean(values: npt.ArrayLike) -> float:
    """Return the mean of the middle half: the lowest and the highest ``floor(n / 4)`` values are left out.

    It is more robust than the mean and more efficient than the median. Source: Agarwal et al., "Deep reinforcement
    learning at the edge of the statistical precipice", NeurIPS 2021.

    Raises:
        ValueError: there are no values, or one is not finite.
    """
    ordered = np.sort(finite("values", values).ravel())
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def probability_of_improvement(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the probability that a random run of ``first`` beats one of ``second``; a tie counts one half.

    This is the Mann-Whitney U statistic divided by n * m (Agarwal et al., 2021). The runs, [n] and [m], need not be
    paired.

    Raises:
        ValueError: either is empty, or a value is not finite.
    """
    a, b = finite("first", first).ravel(), finite("second", second).ravel()
    difference = a[:, None] - b[None, :]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def paired_bootstrap(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    seed: int = 0,
    statistic: Statistic = mean,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """Return the percentile interval of a statistic of ``first - second``, paired by seed.

    Training seeds and market seeds are crossed: every trained agent plays every market. So both are resampled with
    replacement, and each resample takes the differences where the two meet (Owen, "The pigeonhole bootstrap", Annals of
    Applied Statistics 1, 2007). Treating all cells as independent runs would claim far more certainty than a few
    training seeds can give.

    Args:
        first, second: [training seeds, market seeds]; for a policy that is not trained, [market seeds] or a single row.
        seed: the seed of the resampling.
        statistic: the statistic of the differences: ``mean`` or ``interquartile_mean``, for example.
        level: the confidence level, in (0, 1).
        resamples: how many resamples to draw, at least 1.

    Raises:
        ValueError: the shapes do not fit, a value is missing or not finite, or level or resamples are out of range.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), not {level}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    a, b = (np.atleast_2d(finite(name, runs)) for name, runs in (("first", first), ("second", second)))
    untrained = 1 in (a.shape[0], b.shape[0])
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not (a.shape == b.shape or untrained):
        raise ValueError(f"runs of shapes {np.shape(first)} and {np.shape(second)} cannot be paired by seed")
    difference = a - b
    rows, columns = difference.shape
    rng = stream(seed, "bootstrap")
    drawn = [rng.integers(size, size=(resamples, size)) for size in (rows, columns)]
    if statistic is mean:  # it takes only how often each row and column was drawn, which is far faster
        counts = [_counts(indices) for indices in drawn]
        found = np.einsum("rj,rj->r", counts[0] @ difference, counts[1]) / difference.size
    else:
        pairs = zip(*drawn, strict=True)
        found = np.array([statistic(difference[np.ix_(row, column)].ravel()) for row, column in pairs])
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(statistic(difference.ravel())), float(low), float(high), level)


def mean_band(runs: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the ends [points] of the 95 % interval of the mean over seeds at many points of a curve, low and high.

    At each point it is the interval that ``paired_bootstrap`` has for the values against zero.

    Args:
        runs: [market seeds, points].

    Raises:
        ValueError: a value is missing or not finite.
    """
    resamples = 10_000
    values = np.atleast_2d(finite("runs", runs))
    rng = stream(0, "bootstrap")
    rng.integers(1, size=(resamples, 1))  # the training seeds, of which there is one
    counts = _counts(rng.integers(len(values), size=(resamples, len(values))))
    low, high = np.quantile(counts @ values / len(values), [0.025, 0.975], axis=0)
    return low, high


def area_under_curve(accuracy: npt.ArrayLike, axis: int = -1) -> FloatArray:
    """Return the AUC: the mean accuracy over the rounds along ``axis``, in [0, 1].

    Raises:
        ValueError: there are no rounds, or an accuracy is not finite.
    """
    return np.asarray(finite("accuracy", accuracy).mean(axis=axis))


def kaplan_meier(rounds: npt.ArrayLike, reached: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the Kaplan-Meier estimate of the share of runs that are still short of their target.

    A run that is censored in a round counts as still at risk in that round. Source: Kaplan and Meier, "Nonparametric
    estimation from incomplete observations", JASA 53, 1958.

    Args:
        rounds: [n] the round in which a run met its target, or was last seen short of it; above 0.
        reached: [n] whether it met its target.

    Returns:
        times [k]: rounds in which a target was met, ascending; survival [k]: the share just after each.

    Raises:
        ValueError: there are no runs, shapes differ, or a round is not a positive number.
    """
    times, events = finite("rounds", rounds), np.asarray(reached, dtype=np.bool_)
    if times.ndim != 1 or times.shape != events.shape:
        raise ValueError(
            f"rounds and reached must be lists of the same length, not of shapes {times.shape} and {events.shape}"
        )
    if (times <= 0).any():
        raise ValueError("rounds must be positive")
    when = np.unique(times[events])
    at_risk = (times[None, :] >= when[:, None]).sum(axis=1)
    met = ((times[None, :] == when[:, None]) & events[None, :]).sum(axis=1)
    return when, np.cumprod(1 - met / at_risk)


def restricted_mean(rounds: npt.ArrayLike, reached: npt.ArrayLike, horizon: float) -> float:
    """Return the restricted mean rounds to target: the area under the Kaplan-Meier curve up to ``horizon``.

    It is the mean of min(rounds to target, horizon), estimated from censored runs too. Unlike a mean over successful
    runs, it does not reward a policy for failing where others take long. Source: Royston and Parmar, "Restricted mean
    survival time", BMC Medical Research Methodology 13, 2013.

    Args:
        rounds, reached: see ``kaplan_meier``.
        horizon: above 0, usually N. If the last run is censored before it, the curve keeps its last value.

    Raises:
        ValueError: see ``kaplan_meier``; or the horizon is not a finite number above 0.
    """
    if not 0 < horizon < float("inf"):
        raise ValueError(f"horizon must be a finite number above 0, not {horizon}")
    times, survival = kaplan_meier(rounds, reached)
    inside = times < horizon
    edges = np.concatenate([[0.0], times[inside], [horizon]])
    return float((np.diff(edges) * np.concatenate([[1.0], survival[inside]])).sum())


def _counts(indices: IntArray) -> FloatArray:
    """Return how often each of n indices is in each row [resamples, n]; [resamples, n]."""
    resamples, n = indices.shape
    flat = (indices + n * np.arange(resamples)[:, None]).ravel()
    return np.bincount(flat, minlength=resamples * n).reshape(resamples, n).astype(np.float64)


def finite(name: str, values: npt.ArrayLike) -> FloatArray:
    """Return values as an array.

    Raises:
        ValueError: there are none, or one is not a finite number; the message starts with ``name``.
    """
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        raise ValueError(f"{name} must not be empty")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold only finite numbers")
    return array
