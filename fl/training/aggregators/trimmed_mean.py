"""The mean of each parameter without its extremes."""

import numpy as np

from fl.arrays import FloatArray
from fl.training.aggregator import Aggregator, Updates, mean_of, outliers
from flmarket.core.plugin_options import in_range

__all__ = ["TrimmedMean"]


class TrimmedMean(Aggregator):
    """The mean of each parameter without a share of the highest and the lowest values (Yin et al., 2018).

    Fidelity to Yin et al. (2018): checked:
    tests/fl/training/test_aggregation.py::test_three_updates_of_three_numbers_by_hand,
    tests/fl/training/test_sources.py::test_median_and_trimmed_mean_are_taken_parameter_by_parameter.
    """

    def __init__(self, *, share: float = 0.2) -> None:
        """Take the share of the clients, rounded down, that is left out at each end."""
        self._share = in_range("share", share, 0, 0.5, below=True)

    def aggregate(self, updates: Updates) -> FloatArray:
        models = np.sort(updates.models, axis=0)
        cut = outliers(self._share, len(models))
        return mean_of(models[cut : len(models) - cut])
