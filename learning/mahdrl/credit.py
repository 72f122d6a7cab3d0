"""Credit: how much better than usual did a service's model do after a decision?

The paper's reward Omega^accuracy shows how far training has come, not what one round's choice did: it rises by itself
with the rounds, and almost all of its variance comes from what happened before. Here a decision in round n is credited
with

    A_n = scale * sum_{j<h} w_{n+j} d_{n+j} / sum_{j<h} w_{n+j},      d_n = y_n - baseline_n,   w_n = exp(-baseline_n),

where y = -log(1 - accuracy) turns progress on any data set into comparable steps, the baseline is a running mean over
episodes of y for that service and round, and the sums end where the service leaves. The weight w is the usual error in
a round, so that w d is, for small d, what the accuracy deviates by: a step of y is worth less later on, where it moves
the accuracy less, and what helps at once counts for more while the error falls fast.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fl.arrays import FloatArray, IntArray
from learning.mahdrl.networks import Tensors

SMALLEST_ERROR = 1e-4
"""Errors are cut to this: y would be infinite at an accuracy of 1. A test set of 10,000 images resolves no less."""

SLOWEST_RATE = 0.05
"""Rate per episode at which the baseline forgets once it has seen 20 of them, so that it follows the policy."""

SMALLEST_SIZE = 1e-6  # gains this small are none: nothing was decided in this market

LARGEST_GAIN = 3.0  # in usual sizes: a rare round must not outweigh all others


def running_rate(seen: Any, slowest: float = SLOWEST_RATE) -> Any:
    """Return how far a running mean moves towards the latest of the values seen, given how many: a number, or [n]."""
    return np.maximum(1.0 / seen, slowest)


def progress(accuracies: npt.ArrayLike) -> FloatArray:
    """Return y = -log(1 - accuracy), of the same shape."""
    return -np.log(np.maximum(1.0 - np.asarray(accuracies, dtype=np.float64), SMALLEST_ERROR))


def advantages(
    deviations: FloatArray,  # [n] d of each round until the service left
    weights: FloatArray,  # [n] w, how much a deviation in each round counts
    *,
    horizon: int,  # h, how many rounds a decision is credited with, its own included
    scale: float,  # factor that brings the result to about unit size
) -> FloatArray:
    """Return A_n [n] for every round of one service's episode."""
    weighted = np.concatenate([[0.0], np.cumsum(weights * deviations)])
    weight = np.concatenate([[0.0], np.cumsum(weights)])
    now = np.arange(len(deviations))
    end = np.minimum(now + horizon, len(deviations))
    return np.asarray(scale * (weighted[end] - weighted[now]) / (weight[end] - weight[now]))


def differences(
    # [n] by service; None for a service without a baseline, with which nobody is compared. A service that is alone in a
    # round keeps its own deviation.
    deviations: Mapping[str, FloatArray | None],
) -> dict[str, FloatArray | None]:
    """Return each service's deviations less the mean of the others' in the same round: what all share is not credit."""
    known = {name: values for name, values in deviations.items() if values is not None}
    result: dict[str, FloatArray | None] = dict(deviations)
    for name, own in known.items():
        others = np.full((len(known), len(own)), np.nan)
        for row, (other, values) in enumerate(known.items()):
            if other != name:
                shared = min(len(own), len(values))
                others[row, :shared] = values[:shared]
        number = np.isfinite(others).sum(axis=0)
        result[name] = own - np.nansum(others, axis=0) / np.maximum(number, 1)
    return result


class Baseline:
    """A running mean of y, or of another value, for each service and round."""

    def __init__(self, services: int, rounds: int, *, slowest: float = SLOWEST_RATE) -> None:
        self._slowest = slowest
        self.mean: FloatArray = np.zeros((services, rounds))  # [M, N]
        self.episodes: IntArray = np.zeros(services, dtype=np.int64)  # [M] episodes seen

    def errors(self, service: int) -> FloatArray:
        """Return w [N], the usual error in each round."""
        return np.asarray(np.exp(-self.mean[service]))

    def deviations(self, service: int, y: FloatArray) -> FloatArray | None:
        """Return d [n] for an episode's y [n], and add the episode to the baseline; None for the first episode."""
        first = self.episodes[service] == 0
        deviation = y - self.mean[service, : len(y)]
        self.add(service, y)
        return None if first else deviation

    def add(self, service: int, y: FloatArray) -> None:
        """Add an episode's y [n] to the baseline.

        A service that left keeps its last y: otherwise late rounds would be compared with slow episodes only.
        """
        held = np.concatenate([y, np.full(self.mean.shape[1] - len(y), y[-1])])
        self.episodes[service] += 1
        self.mean[service] += running_rate(self.episodes[service], self._slowest) * (held - self.mean[service])

    def state(self) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        return {"baseline.mean": self.mean, "baseline.episodes": self.episodes}

    def restore(self, state: Tensors) -> None:
        """Continue from a ``state``."""
        self.mean[...] = state["baseline.mean"]
        self.episodes[...] = state["baseline.episodes"]


class Sizes:
    """The usual size of each service's gains: the root of their mean square, a running mean over episodes."""

    def __init__(self, services: int) -> None:
        self.square: FloatArray = np.zeros(services)  # [M] mean squares
        self.episodes: IntArray = np.zeros(services, dtype=np.int64)  # [M] episodes seen

    def scaled(self, service: int, gains: FloatArray) -> FloatArray:
        """Return gains [n] of an episode in units of their usual size, at most 3 of them, and take them in."""
        self.episodes[service] += 1
        self.square[service] += running_rate(self.episodes[service]) * (float(np.mean(gains**2)) - self.square[service])
        size = max(float(np.sqrt(self.square[service])), SMALLEST_SIZE)
        scaled: FloatArray = np.clip(gains / size, -LARGEST_GAIN, LARGEST_GAIN)
        return scaled

    def state(self) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        return {"sizes.square": self.square, "sizes.episodes": self.episodes}

    def restore(self, state: Tensors) -> None:
        """Continue from a ``state``."""
        self.square[...] = state["sizes.square"]
        self.episodes[...] = state["sizes.episodes"]
