"""Statistics that policies are judged by: area under a learning curve, rounds to target, probability of improvement."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray

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
    lengths: FloatArray | None = None,  # [N] of rounds that are not equally long
) -> FloatArray:
    """Return the AUC of services, [..., M]: the mean over the rounds from each one's arrival on.

    One that arrives after the last of these rounds has its value in that one.
    """
    curves = finite("values", values)
    means = np.asarray(curves.mean(axis=-2))
    first = np.broadcast_to(np.minimum(arrivals, curves.shape[-2]), curves.shape[-1:])
    for m in np.flatnonzero(first > (1 if lengths is None else 0)).tolist():
        own, time = curves[..., first[m] - 1 :, m], None if lengths is None else lengths[first[m] - 1 :]
        means[..., m] = own.mean(axis=-1) if time is None or not time.any() else own @ (time / time.sum())
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


class RoundsToTarget(NamedTuple):
    """Rounds to target, as reports, tables, screens and evaluations count them. Arrays have any axes: [seed, service].

    Where time goes on without rounds, it may hold seconds instead.

    They are counted from 1, or from the service's arrival. A service meets its target in the first round after which
    its accuracy is at or above it. A run of N rounds in which that does not happen is *censored* at N: it shows only
    that the target takes more than N rounds. A mean over the runs that succeeded is never shown: it would reward a
    policy for failing where others take long.
    """

    rounds: AnyArray  # [...] the round in which the target was met, from 1; N if it was not
    reached: BoolArray  # [...] whether it was met

    @classmethod
    def first(
        cls,
        met: npt.ArrayLike,  # [..., N] whether the accuracy after each round is at or above the target
    ) -> "RoundsToTarget":
        """Return when a run first met its target."""
        there = np.asarray(met, dtype=np.bool_)
        if not there.shape[-1]:
            raise ValueError("there must be at least one round")
        reached = there.any(axis=-1)
        return cls(np.where(reached, there.argmax(axis=-1) + 1, there.shape[-1]), np.asarray(reached))

    @classmethod
    def of_curves(
        cls,
        accuracy: npt.ArrayLike,  # [..., N] the accuracy after each round
        target: npt.ArrayLike,  # [...] or a number
    ) -> "RoundsToTarget":
        """Return when runs first met their target."""
        return cls.first(finite("accuracy", accuracy) >= np.asarray(target, dtype=np.float64)[..., None])

    def since(self, arrival: IntArray) -> "RoundsToTarget":
        """Return the same, counted from the round ``arrival`` [...] in which each service arrives, which is its first.

        A target that is met before that is met in the first.
        """
        return RoundsToTarget(np.maximum(self.rounds - (arrival - 1), 1), self.reached)

    @classmethod
    def of(
        cls,
        rounds: Sequence[int | None],  # [n] the round of each run, or None if it did not meet its target
        horizon: int | Sequence[int],  # N, or [n] the last round in which each could
    ) -> "RoundsToTarget":
        """Return when runs met their target, given the round of each."""
        reached = np.array([number is not None for number in rounds], dtype=np.bool_)
        met = np.array([0 if number is None else number for number in rounds], dtype=np.int64)
        return cls(np.where(reached, met, horizon), reached)

    @classmethod
    def stack(cls, runs: "Iterable[RoundsToTarget]") -> "RoundsToTarget":
        """Return n runs [...] as one [n, ...]."""
        rounds, reached = zip(*runs, strict=True)
        return cls(np.stack(rounds), np.stack(reached))

    def mean(self) -> float:
        """Return the restricted mean of all runs; a lower bound if any was censored."""
        # the area under the Kaplan-Meier curve up to N, because all runs are censored at the same N
        return float(self.rounds.mean())

    def text(self, interval: str = "") -> str:
        """Return the mean as text: ``52.3``, ``> 52.3 (3 of 5)`` if 3 of 5 runs met the target, or ``never``."""
        count = int(self.reached.sum())
        if not count:
            return "never"
        mean = f"{self.mean():.1f}{interval}"
        return mean if count == self.reached.size else f"> {mean} ({count} of {self.reached.size})"
