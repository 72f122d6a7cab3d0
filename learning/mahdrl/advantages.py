"""Advantages: how much better than usual did a service's model do after a decision?

The paper's reward Omega^accuracy shows how far training has come, not what one round's choice did: it rises by itself
with the rounds. Here a decision is credited by ``advantages``, or, in trainings on learning curves, in ``Usual``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fl.arrays import FloatArray, IntArray
from fl.surrogate.learning_curves import Curve, Trained, added
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.training.agent_files import Tensors
from learning.training.loop import EpisodeRecord

SMALLEST_ERROR = 1e-4
"""Errors are cut to this: y would be infinite at an accuracy of 1. A test set of 10,000 images resolves no less."""

SLOWEST_RATE = 0.05
"""Rate per episode at which the baseline forgets once it has seen 20 of them, so that it follows the policy."""

SMALLEST_SIZE = 1e-6  # credit this small is none: nothing was decided in this market

LARGEST_GAIN = 3.0  # in usual sizes: a rare round must not outweigh all others

SMALLEST_PART = 0.1  # no round's usual size counts as less than this part of the run's


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
    """Return the advantage of every round of one service's episode, [n].

    A decision in round n is credited with

        A_n = scale * sum_{j<h} w_{n+j} d_{n+j} / sum_{j<h} w_{n+j},   d_n = y_n - baseline_n,   w_n = exp(-baseline_n),

    where y = -log(1 - accuracy) turns progress on any data set into comparable steps, the baseline is a running mean
    over episodes of y for that service and round, and the sums end where the service leaves. The weight w is the usual
    error in a round, so that w d is, for small d, what the accuracy deviates by: a step of y is worth less later on,
    where it moves the accuracy less, and what helps at once counts for more while the error falls fast.
    """
    weighted = np.concatenate([[0.0], np.cumsum(weights * deviations)])
    weight = np.concatenate([[0.0], np.cumsum(weights)])
    now = np.arange(len(deviations))
    end = np.minimum(now + horizon, len(deviations))
    return np.asarray(scale * (weighted[end] - weighted[now]) / (weight[end] - weight[now]))


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
        return {"baseline.mean": self.mean, "baseline.episodes": self.episodes}


class Usual:
    """Credit in hindsight: what a decision added to the run, as the learning curves tell when it is over.

    A training on curves may know what no agent sees: the images that a service trained on. A decision in round n, which
    let the service train on the images S_n, is credited with

        A_n = sum_{j >= n} (accuracy_j - accuracy_j with the usual images in place of S_n),

    all other rounds as they were played, without luck and noise. The usual images are as many, of as many clients and
    as lopsided as those that the service has trained on in that market so far: running means over episodes. Credit
    counts in its usual size, the geometric mean of that in the round and that in the whole run: what is done first
    moves the accuracies of all rounds, but what is done later must be learned, too.
    """

    def __init__(self, services: int, rounds: int) -> None:
        # [M, 3] the mean logs of how many images and of how many equal clients, and the mean EMD
        self.images: FloatArray = np.zeros((services, 3))
        self.episodes: IntArray = np.zeros(services, dtype=np.int64)  # [M] episodes seen
        self.square: FloatArray = np.zeros((services, rounds))  # [M, N] the mean square of what a round added
        self.rounds: IntArray = np.zeros((services, rounds), dtype=np.int64)  # [M, N] how often each round was played

    def credit(self, service: int, curve: Curve, rounds: list[Trained | None]) -> FloatArray:
        """Return the credit [n] of an episode's rounds in its usual size, at most 3 of it; arguments as ``worth``."""
        worth, n = self.worth(service, curve, rounds), len(rounds)
        self.rounds[service, :n] += 1
        self.square[service, :n] += running_rate(self.rounds[service, :n]) * (worth**2 - self.square[service, :n])
        whole = float(np.sqrt(self.square[service, :n].mean()))
        own = np.maximum(np.sqrt(self.square[service, :n]), SMALLEST_PART * whole)
        usual = np.maximum(np.sqrt(own * whole), SMALLEST_SIZE)
        return np.asarray(np.clip(worth / usual, -LARGEST_GAIN, LARGEST_GAIN))

    def worth(
        self,
        service: int,  # its row
        curve: Curve,  # its learning curve
        rounds: list[Trained | None],  # [n] what it trained on in each
    ) -> FloatArray:
        """Return A [n] of an episode's rounds, and take its images in; 0 if no client served in the whole episode."""
        seen = np.array(
            [
                [np.log(one.samples), np.log(one.weights**2 / one.squares), one.weighted / one.weights]
                for one in rounds
                if one is not None
            ]
        )
        if not len(seen):
            return np.zeros(len(rounds))
        if not self.episodes[service]:
            self.images[service] = seen.mean(axis=0)
        size, clients, emd = self.images[service]
        samples = float(np.exp(size))
        instead = Trained(samples, samples, samples * emd, samples * samples / float(np.exp(clients)))
        self.episodes[service] += 1
        self.images[service] += running_rate(self.episodes[service]) * (seen.mean(axis=0) - self.images[service])
        return added(curve, rounds, instead)

    def state(self) -> Tensors:
        return {
            "usual.images": self.images,
            "usual.episodes": self.episodes,
            "usual.square": self.square,
            "usual.rounds": self.rounds,
        }


class Credits:
    """The usual outcome for each service in each market, and so the credit of a decision, of either kind."""

    def __init__(self, services: int, rounds: int, settings: MahdrlSettings) -> None:
        self._settings = settings
        self._baseline, self._usual = Baseline(services, rounds), Usual(services, rounds)

    def of(
        self,
        service: int,  # its row
        name: str,
        accuracies: Sequence[float],  # [n] after each round
        record: EpisodeRecord | None,  # what is known of the episode now; without it, ``hindsight`` gives no credit
    ) -> FloatArray | None:
        """Return the credit [n] of a service's rounds in an episode, and take the episode in; None if there is none.

        There is none in a service's first episode, which nothing can be compared with, unless by ``hindsight``.
        """
        if self._settings.hindsight:
            return None if record is None else self._usual.credit(service, record.curves[name], record.rounds[name])
        weights = self._baseline.errors(service)[: len(accuracies)]
        deviations = self._baseline.deviations(service, progress(accuracies))
        if deviations is None:
            return None
        return advantages(deviations, weights, horizon=self._settings.horizon, scale=self._settings.scale)

    def state(self) -> Tensors:
        return {**self._baseline.state(), **self._usual.state()}
