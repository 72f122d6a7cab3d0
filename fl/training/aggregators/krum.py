"""Krum: the model that lies among the most others."""

from functools import cmp_to_key

import numpy as np

from fl.arithmetic.ordered_sums import folded_sums
from fl.arrays import Float32Array, FloatArray, IntArray
from fl.training.aggregator import Aggregator, Updates, mean_of, outliers
from flmarket.core.plugin_options import in_range, whole

__all__ = ["Krum"]


class Krum(Aggregator):
    """The model nearest to its neighbours, or the mean of the ``keep`` nearest (Blanchard et al., 2017).

    Of n updates, f may be an attacker's: the ``share`` of n, rounded down, and at most what the paper allows,
    n >= 2 f + 3. Of one or two updates nothing can be told; their mean is taken. Of models that are equally near, the
    one that is nearer to all is taken first, and of those that are equal in that, too, the one whose first parameter
    that differs is lower. So numbering clients otherwise changes nothing.

    Fidelity to Blanchard et al. (2017): checked:
    tests/fl/training/test_aggregation.py::test_three_updates_of_three_numbers_by_hand,
    tests/fl/training/test_aggregation.py::test_krum_guards_against_no_more_attackers_than_the_paper_allows,
    tests/fl/training/test_sources.py::test_krum_has_the_lowest_sum_of_squared_distances_to_its_n_less_f_less_2_nearest.

    Fidelity to Blanchard et al. (2017), ties and small rounds: interpretation: of one or two updates the mean is taken,
    and ties are broken without regard to numbering.
    """

    def __init__(self, *, share: float = 0.2, keep: int = 1) -> None:
        """Take the share of the clients that may be attackers, and the number of models averaged (Multi-Krum)."""
        self._share = in_range("share", share, 0, 0.5, below=True)
        self._keep = whole("keep", keep, 1)

    def aggregate(self, updates: Updates) -> FloatArray:
        models = updates.models
        clients = len(models)
        if clients < 3:
            return mean_of(models)
        attackers = min(outliers(self._share, clients), (clients - 3) // 2)
        others = np.sort(_squared_distances(models), axis=1)[:, 1:]  # the first is itself
        to_nearest = np.add.accumulate(others, axis=1)  # [n, n - 1] the sum of the distances to so many others
        best = np.lexsort((_places(models), to_nearest[:, -1], to_nearest[:, clients - attackers - 3]))
        best = best[: min(self._keep, clients - attackers)]
        return mean_of(models[best])


def _places(models: Float32Array) -> IntArray:
    """Return the place [n] of each model where they are sorted by their first parameter, then the second, and so on."""

    def compared(i: int, j: int) -> int:
        apart = models[i] != models[j]
        first = int(apart.argmax())
        return 0 if not apart[first] else -1 if models[i, first] < models[j, first] else 1

    return np.argsort(sorted(range(len(models)), key=cmp_to_key(compared)))


def _squared_distances(models: Float32Array) -> FloatArray:
    """Return the squared distance [n, n] of each model to each; a model is nearer to itself than to any other."""
    distances = np.full((len(models), len(models)), -1.0)
    for i in range(len(models) - 1):
        apart = models[i + 1 :] - models[i].astype(np.float64)
        distances[i, i + 1 :] = distances[i + 1 :, i] = folded_sums(apart * apart)
    return distances
