"""Federated averaging of updates that are cut to a length."""

import math

import numpy as np

from fl.arithmetic.ordered_sums import folded_sums
from fl.arrays import FloatArray
from fl.training.aggregator import Aggregator, Updates
from flmarket.core.plugin_options import in_range

__all__ = ["NormClip"]


class NormClip(Aggregator):
    """FedAvg of changes to the old model that are scaled down to a norm at most (Sun et al., 2019).

    Fidelity to Sun et al. (2019): checked:
    tests/fl/training/test_aggregation.py::test_a_change_that_is_too_long_is_scaled_down_before_it_is_weighted.
    """

    def __init__(self, *, norm: float) -> None:
        """Take the largest Euclidean norm of a client's change."""
        self._norm = in_range("norm", norm, 0, above=True)

    def aggregate(self, updates: Updates) -> FloatArray:
        weights = updates.weights.tolist()
        old = updates.old.astype(np.float64)
        new, total = old.copy(), float(sum(weights))
        for model, weight in zip(updates.one_by_one(), weights, strict=True):
            change = model - old
            length = math.sqrt(folded_sums(change * change))
            new += change * (weight / total * min(1.0, self._norm / length) if length else 0.0)
        return new
