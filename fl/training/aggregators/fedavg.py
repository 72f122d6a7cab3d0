"""Federated averaging, the paper's rule."""

from collections.abc import Iterable, Sequence

import numpy as np

from fl.arrays import Float32Array
from fl.training.aggregator import Aggregator, Updates

__all__ = ["FedAvg"]


class FedAvg(Aggregator):
    """The mean of the clients' models, weighted by their data sizes (McMahan et al., 2017); the paper's.

    Fidelity to McMahan et al. (2017): checked:
    tests/fl/training/test_aggregation.py::test_three_updates_of_three_numbers_by_hand.
    """

    def aggregate(self, updates: Updates) -> Float32Array:
        return fedavg(updates.one_by_one(), updates.weights.tolist())


def fedavg(models: Iterable[Float32Array], sizes: Sequence[int]) -> Float32Array:
    """Return the mean of clients' models [P], weighted by the data sizes D they were trained on (McMahan et al., 2017).

    Summed one after another in double precision, so that the result has the same bits on any number of threads. Of
    models that come one at a time, none is kept. Models that have diverged give a mean that is not finite, without a
    warning: the caller checks.
    """
    total = float(sum(sizes))
    if total <= 0:
        raise ValueError("FedAvg needs clients that hold data")
    mean = np.zeros(1)
    for model, size in zip(models, sizes, strict=True):
        with np.errstate(invalid="ignore"):  # inf - inf
            mean = mean + (size / total) * model
    return mean.astype(np.float32)
