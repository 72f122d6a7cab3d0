"""Statistics to judge policies by: what a learning curve amounts to. How certain they are: ``learning.intervals``."""

import numpy as np
import numpy.typing as npt

from fl.arrays import FloatArray


def interquartile_mean(values: npt.ArrayLike) -> float:
    """Return the mean of the middle half: the lowest and the highest ``floor(n / 4)`` values are left out.

    It is more robust than the mean and more efficient than the median. Source: Agarwal et al., "Deep reinforcement
    learning at the edge of the statistical precipice", NeurIPS 2021.
    """
    ordered = np.sort(finite("values", values).ravel())
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def probability_of_improvement(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the probability that a random run of ``first`` beats one of ``second``; a tie counts one half.

    This is the Mann-Whitney U statistic divided by n * m (Agarwal et al., 2021). The runs, [n] and [m], need not be
    paired.
    """
    a, b = finite("first", first).ravel(), finite("second", second).ravel()
    difference = a[:, None] - b[None, :]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def area_under_curve(
    values: npt.ArrayLike,  # [..., N, M] accuracies, or rewards
    arrivals: npt.ArrayLike = 1,  # [M] the first round of each service, from 1; or that of all
) -> FloatArray:
    """Return the AUC of services, [..., M]: the mean over the rounds from each one's arrival on."""
    found = finite("values", values)
    means = np.asarray(found.mean(axis=-2))
    first = np.broadcast_to(arrivals, found.shape[-1:])
    for m in np.flatnonzero(first > 1).tolist():
        means[..., m] = found[..., first[m] - 1 :, m].mean(axis=-1)
    return means


def kaplan_meier(
    rounds: npt.ArrayLike,  # [n] the round in which a run met its target, or was last seen short of it; above 0
    reached: npt.ArrayLike,  # [n] whether it met its target
) -> tuple[FloatArray, FloatArray]:
    """Return the Kaplan-Meier estimate of the share of runs that are still short of their target.

    A run that is censored in a round counts as still at risk in that round. Source: Kaplan and Meier, "Nonparametric
    estimation from incomplete observations", JASA 53, 1958.
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


def restricted_mean(
    rounds: npt.ArrayLike,  # see ``kaplan_meier``
    reached: npt.ArrayLike,  # see ``kaplan_meier``
    horizon: float,  # above 0, usually N. If the last run is censored before it, the curve keeps its last value
) -> float:
    """Return the restricted mean rounds to target: the area under the Kaplan-Meier curve up to ``horizon``.

    It is the mean of min(rounds to target, horizon), estimated from censored runs too. Unlike a mean over successful
    runs, it does not reward a policy for failing where others take long. Source: Royston and Parmar, "Restricted mean
    survival time", BMC Medical Research Methodology 13, 2013.
    """
    if not 0 < horizon < float("inf"):
        raise ValueError(f"horizon must be a finite number above 0, not {horizon}")
    times, survival = kaplan_meier(rounds, reached)
    inside = times < horizon
    edges = np.concatenate([[0.0], times[inside], [horizon]])
    return float((np.diff(edges) * np.concatenate([[1.0], survival[inside]])).sum())


def finite(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        raise ValueError(f"{name} must not be empty")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold only finite numbers")
    return array
