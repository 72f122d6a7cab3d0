"""Statistics that policies are judged by: the area under a learning curve, and the probability of improvement."""

import numpy as np
import numpy.typing as npt

from fl.arrays import FloatArray

SAME = 1e-12
"""The relative difference up to which numbers are the same: money and accuracies that were summed in another order."""


def probability_of_improvement(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the probability that a random run of ``first`` beats one of ``second``; a tie counts one half.

    This is the Mann-Whitney U statistic divided by n * m (Agarwal et al., 2021). The runs, [n] and [m], need not be
    paired.
    """
    a, b = finite("first", first).ravel(), finite("second", second).ravel()
    difference = differences(a[:, None], b[None, :])
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


def differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return ``a - b``, 0 where they are the same."""
    return np.where(np.isclose(a, b, rtol=SAME, atol=0.0), 0.0, a - b)


def finite(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        raise ValueError(f"{name} must not be empty")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold only finite numbers")
    return array
