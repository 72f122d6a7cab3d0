"""FedAsync: a new model of each update, at once."""

import numpy as np

from fl.arrays import Float32Array
from fl.training.trigger import Gathered, Trigger, polynomial
from flmarket.core.plugin_options import in_range

__all__ = ["FedAsync"]


class FedAsync(Trigger):
    """A new model of each update as it arrives, mixed with the old one (Xie, Koyejo and Gupta, 2019).

    ``new = (1 - a) old + a model``, with ``a = mixing (1 + staleness)^-exponent``.

    Fidelity to Xie, Koyejo and Gupta (2019): checked:
    tests/fl/training/test_triggers.py::test_a_stale_update_counts_less.
    """

    def __init__(self, *, mixing: float = 0.6, exponent: float = 0.5) -> None:
        """Take the weight of a fresh model, and how fast it falls with the staleness."""
        self._mixing = in_range("mixing", mixing, 0, 1)
        self._exponent = in_range("exponent", exponent, 0)

    def due(self, gathered: Gathered) -> bool:
        return True

    def share(self, staleness: int) -> float:
        return self._mixing * polynomial(staleness, self._exponent)

    def brought_up(self, model: Float32Array, begun: Float32Array, old: Float32Array, staleness: int) -> Float32Array:
        # Models are mixed here, not changes: what others have done since is undone in part.
        return (old + self.share(staleness) * (model.astype(np.float64) - old)).astype(np.float32)
