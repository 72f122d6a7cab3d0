"""The worth of clients to a service: a prior from what clients show, corrected by the service's own learning curve.

On the surrogate's MNIST the noise of one round's log error is about five times the mean fall, so regressing each fall
on who served (``ucb``, ``contribution``) learns next to nothing in a run. Here the level of the error is explained
instead, because noise does not add up and progress does; and the prior says something.
"""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from des.observation import Feedback, Observation, Offer
from fl.arithmetic.elementary import exp, log
from fl.arithmetic.ordered_sums import column_sums, inverse, mean, product
from fl.arrays import AnyArray, FloatArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.pricing import contexts

LARGEST_ACCURACY: Final = 1 - 1e-6  # accuracies are cut to this, so that their errors have logarithms

SPEED: Final = 0.8  # prior of the power with which errors fall: an order of magnitude, which a few rounds correct

SLOWEST: Final = 0.2
"""The power is at least this where it divides: a curve that does not fall says nothing about clients."""

FIRST: Final = 5
"""Rounds of a run that are not learned from: models leave a plateau before their errors fall like a power."""

STEEPEST: Final = 20.0  # log values are cut to plus and minus this

_FLAT: Final = 1e-6  # precision of the prior of the curve's start, which nothing is known about


class Gains:
    """Values of clients, ``exp(theta . z)``, z being a client's bid and its DQI, standardised over the round's clients.

    The prior of theta is ``steepness * [s, 1 - s + trust * max(0, r)]``:

    * Data that are worth something cost something, so bids show what is bought. That is so as far as clients with the
      same DQI, and so in general the same data, ask the same: s is 1 less their mean squared difference from each other
      as a part of that of all clients, over the rounds so far. Where costs vary, or clients learn what to ask, s is
      lower, and the DQI takes the place of the bid.
    * r is the correlation of bids and DQI over clients, mean of the rounds so far. A DQI counts as far as it agrees
      with the bids: with the published parameters of eq. 6 it does not, and the dearest clients are worth the most;
      with fitted ones it does.

    Learning: errors fall like a power of the progress made (``fl.surrogate.learning_curves``), each round's step being
    proportional to the values of those who served. To first order, with n for the number that served, and means over
    the rounds so far:

        log(1 - accuracy) = start - speed * (log(1 + rounds) + theta . mean(z) + size * mean(log n))

    which is linear in ``start``, ``speed``, ``speed * theta`` and ``speed * size``, and fitted by ridge regression
    towards the prior. Which clients are best is what matters, so ``size`` is only taken out, and not used.

    Ours. The correction is small: see research/notebook/field.md for what it is worth.
    """

    def __init__(
        self,
        *,
        # how much more a client is worth whose bid is one standard deviation higher: exp(steepness) times; in [0, 10]
        steepness: float,
        trust: float,  # weight of a DQI relative to a bid where both agree; in [0, 10]
        # how firmly that is held, counted in rounds that differ by one standard deviation; in [0.01, 1e9]
        prior: float,
    ) -> None:
        self._steepness = in_range("steepness", steepness, 0, 10)
        self._trust, self._prior = in_range("trust", trust, 0, 10), in_range("prior", prior, 0.01, 1e9)
        self._gram, self._moment = np.zeros((5, 5)), np.zeros(5)
        self._shown = np.zeros(3)  # sums over rounds of the served clients' mean bid and DQI, and log n
        self._served = self._rounds = self._agreement = 0.0
        self._apart = self._pairs = 0.0  # clients of the same DQI: their bids' squared deviations, and how many count

    def values(
        self,
        seen: Observation,  # the round
        width: float = 0.0,  # how many standard deviations of theta are added to each log value
    ) -> FloatArray:
        """Return what each client is worth, [C]; only ratios mean anything."""
        z = contexts(seen)
        covariance = inverse(self._gram + np.diag(self._precision))
        fitted = product(covariance, (self._moment + self._precision * self._mean(z))[:, None])[:, 0]
        speed = max(float(fitted[1]), SLOWEST)
        logs = product(z, fitted[2:4, None])[:, 0] / speed
        if width:
            spread = product(product(z, covariance[2:4, 2:4]) * z, np.ones((2, 1)))[:, 0]
            logs = logs + width * np.sqrt(np.maximum(spread, 0.0)) / speed
        worth: FloatArray = exp(np.minimum(np.maximum(logs - logs.max(), -STEEPEST), 0.0))
        return worth

    def learn(self, seen: Observation, offer: Offer, feedback: Feedback) -> None:
        """Add a round to the curve."""
        z = contexts(seen)
        self._agreement += mean(z[:, 0] * z[:, 1])
        self._rounds += 1
        apart, pairs = _within(z)
        self._apart, self._pairs = self._apart + apart, self._pairs + pairs
        served = offer.clients[feedback.served]
        if not len(served):
            return
        self._served += 1
        self._shown = self._shown + np.array([*(column_sums(z[served]) / len(served)), log(float(len(served)))])
        if self._served <= FIRST:
            return
        row = np.array([1.0, -log(1.0 + self._served), *(-self._shown / self._served)])
        self._gram = self._gram + np.outer(row, row)
        self._moment = self._moment + row * log_error(feedback.accuracy)

    def state(self) -> dict[str, FloatArray]:
        """Return what is known, as arrays by name; see ``Policy.state``."""
        counts = np.array([self._served, self._rounds, self._agreement, self._apart, self._pairs])
        return {"gram": self._gram, "moment": self._moment, "shown": self._shown, "counts": counts}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._gram, self._moment = np.array(state["gram"]), np.array(state["moment"])
        self._shown = np.array(state["shown"])
        self._served, self._rounds, self._agreement, self._apart, self._pairs = state["counts"].tolist()

    @property
    def _precision(self) -> FloatArray:
        return np.array([_FLAT, 1.0, self._prior, self._prior, self._prior])

    def _mean(self, z: FloatArray) -> FloatArray:
        """Return the prior's mean, given the round's contexts [C, 2]."""
        agreement = (self._agreement + mean(z[:, 0] * z[:, 1])) / (self._rounds + 1)
        apart, pairs = _within(z)
        same = max(1 - (self._apart + apart) / (self._pairs + pairs + 1), 0.0)  # 1 where no client can be compared
        whole = SPEED * self._steepness
        return np.array([0.0, SPEED, whole * same, whole * (1 - same + self._trust * max(agreement, 0.0)), 0.0])


def log_error(accuracy: float) -> float:
    """Return log(1 - accuracy), whose fall is a round's progress; finite for every accuracy."""
    return log(1 - min(accuracy, LARGEST_ACCURACY))


def _within(
    z: FloatArray,  # [C, 2] bids and DQI, standardised
) -> tuple[float, int]:
    """Return how far the bids of clients with the same DQI are from their mean, squared and summed, and the count."""
    _, group, size = np.unique(z[:, 1], return_inverse=True, return_counts=True)
    middle = np.bincount(group, weights=z[:, 0]) / size  # added in the clients' order
    away = z[:, 0] - middle[group]
    return math.fsum((away * away).tolist()), len(z) - len(size)
