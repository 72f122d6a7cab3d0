"""The median of each parameter."""

import numpy as np

from fl.arrays import FloatArray
from fl.training.aggregator import Aggregator, Updates, mean_of

__all__ = ["Median"]


class Median(Aggregator):
    """The median of each parameter over the clients, whatever their data sizes (Yin et al., 2018).

    Fidelity to Yin et al. (2018): checked:
    tests/fl/training/test_aggregation.py::test_three_updates_of_three_numbers_by_hand,
    tests/fl/training/test_sources.py::test_median_and_trimmed_mean_are_taken_parameter_by_parameter.
    """

    def aggregate(self, updates: Updates) -> FloatArray:
        models = np.sort(updates.models, axis=0)
        clients = len(models)
        return mean_of(models[(clients - 1) // 2 : clients // 2 + 1])
