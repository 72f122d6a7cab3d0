"""Rounds to target, as reports, tables, screens and evaluations count them: from 1, or from the service's arrival.

A service meets its target in the first round after which its accuracy is at or above it. A run of N rounds in which
that does not happen is *censored* at N: it shows only that the target takes more than N rounds. A mean over the runs
that succeeded is never shown: it would reward a policy for failing where others take long.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fl.arrays import BoolArray, IntArray
from learning.statistics.area_under_curve import finite


class RoundsToTarget(NamedTuple):
    """The rounds in which runs met their target. Arrays have any axes, such as [seed, service]."""

    rounds: IntArray  # [...] the round in which the target was met, from 1; N if it was not
    reached: BoolArray  # [...] whether it was met

    @classmethod
    def first(
        cls,
        met: npt.ArrayLike,  # [..., N] whether the accuracy after each round is at or above the target
    ) -> "RoundsToTarget":
        """Return when a run first met its target."""
        found = np.asarray(met, dtype=np.bool_)
        if not found.shape[-1]:
            raise ValueError("there must be at least one round")
        reached = found.any(axis=-1)
        return cls(np.where(reached, found.argmax(axis=-1) + 1, found.shape[-1]), np.asarray(reached))

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
        horizon: int,  # N
    ) -> "RoundsToTarget":
        """Return when runs met their target, given the round of each."""
        reached = np.array([number is not None for number in rounds], dtype=np.bool_)
        return cls(np.array([horizon if number is None else number for number in rounds], dtype=np.int64), reached)

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
