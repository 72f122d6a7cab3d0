"""Semi-asynchronous: a new model at the end of each slot."""

from fl.training.trigger import Gathered, Trigger, polynomial
from flmarket.core.plugin_options import in_range

__all__ = ["SemiAsync"]


class SemiAsync(Trigger):
    """A new model at the end of each slot, of what has arrived until then; stale updates count less.

    An update counts ``(1 + staleness)^-exponent`` of what the client has changed in the model that it began with.
    """

    def __init__(self, *, exponent: float = 0.5) -> None:
        """Take how fast the share of an update falls with its staleness."""
        self._exponent = in_range("exponent", exponent, 0)

    def due(self, gathered: Gathered) -> bool:
        return gathered.closing

    def share(self, staleness: int) -> float:
        return polynomial(staleness, self._exponent)
