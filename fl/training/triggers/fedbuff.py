"""FedBuff: a new model of every so many updates."""

from fl.training.trigger import Gathered, Trigger, polynomial
from flmarket.core.plugin_options import in_range, whole

__all__ = ["FedBuff"]


class FedBuff(Trigger):
    """A new model as soon as ``buffer`` updates have arrived, stale ones counting less (Nguyen et al., 2022).

    An update counts ``(1 + staleness)^-exponent`` of what the client has changed in the model that it began with.

    Fidelity to Nguyen et al. (2022): checked: tests/fl/training/test_triggers.py::test_models_are_due,
    tests/fl/training/test_triggers.py::test_a_stale_update_counts_less.
    """

    def __init__(self, *, buffer: int = 10, exponent: float = 0.5) -> None:
        """Take the number of updates of a model, and how fast their share falls with the staleness."""
        self._buffer, self._exponent = whole("buffer", buffer, 1), in_range("exponent", exponent, 0)

    def due(self, gathered: Gathered) -> bool:
        return gathered.arrived >= self._buffer

    def share(self, staleness: int) -> float:
        return polynomial(staleness, self._exponent)
