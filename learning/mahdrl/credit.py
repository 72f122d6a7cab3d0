"""Credit: how much better than usual did a service's model do after a decision?

The paper's reward Omega^accuracy says how far training has come, not what one round's choice did: it rises by itself
with the round, and almost all of its variance is what happened before. Here a decision in round n is credited with

    A_n = scale * ( mean_{j<h} d_{n+j}  -  control * mean_{0<j<=w} d_{n-j} ),      d_n = y_n - baseline_n,

where y = -log(1 - accuracy) turns progress on any data set into comparable steps, the baseline is a running mean over
episodes of y for that service and round, the sum is cut where the service leaves, and the second term takes off what
was already ahead or behind before the decision.
"""

import numpy as np
import numpy.typing as npt

from learning.mahdrl.networks import Tensors

Doubles = npt.NDArray[np.float64]

SMALLEST_ERROR = 1e-4
"""Accuracy of exactly 1 would be an infinite y; a test set of 10,000 images resolves no less than this."""

SLOWEST_RATE = 0.05
"""The baseline forgets at this rate per episode once it has seen 1 / 0.05 of them, so that it follows the policy."""


def progress(accuracies: npt.ArrayLike) -> Doubles:
    """Return y = -log(1 - accuracy), of the shape given."""
    return -np.log(np.maximum(1.0 - np.asarray(accuracies, dtype=np.float64), SMALLEST_ERROR))


def advantages(deviations: Doubles, *, horizon: int, window: int, control: float, scale: float) -> Doubles:
    """Return A_n for every round of an episode of one service.

    Args:
        deviations: [n] d of each round until the service left.
        horizon: h, rounds that a decision is credited with, its own included.
        window: w, rounds before it that say how far ahead it started; fewer at the start of the episode.
        control: weight of what was there before.
        scale: brings the result to about unit size.
    """
    total = np.concatenate([[0.0], np.cumsum(deviations)])
    now = np.arange(len(deviations))
    end, start = np.minimum(now + horizon, len(deviations)), np.maximum(now - window, 0)
    ahead = (total[end] - total[now]) / (end - now)
    before = (total[now] - total[start]) / np.maximum(now - start, 1)
    return np.asarray(scale * (ahead - control * before))


class Baseline:
    """A running mean of y for each service and round.

    Attributes:
        mean: [M, N].
        episodes: [M] episodes seen.
    """

    def __init__(self, services: int, rounds: int) -> None:
        self.mean: Doubles = np.zeros((services, rounds))
        self.episodes: npt.NDArray[np.int64] = np.zeros(services, dtype=np.int64)

    def deviations(self, service: int, y: Doubles) -> Doubles | None:
        """Return d [n] for an episode's y [n], and count the episode; None for the first, which has no baseline.

        A service that left is held at its last y in the baseline: otherwise late rounds would be compared with slow
        episodes only.
        """
        held = np.concatenate([y, np.full(self.mean.shape[1] - len(y), y[-1])])
        first = self.episodes[service] == 0
        deviation = y - self.mean[service, : len(y)]
        self.episodes[service] += 1
        rate = max(1.0 / int(self.episodes[service]), SLOWEST_RATE)
        self.mean[service] += rate * (held - self.mean[service])
        return None if first else deviation

    def state(self) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        return {"baseline.mean": self.mean, "baseline.episodes": self.episodes}

    def restore(self, state: Tensors) -> None:
        """Go on where ``state`` was taken."""
        self.mean[...] = state["baseline.mean"]
        self.episodes[...] = state["baseline.episodes"]
