"""D-first: the largest data sets first, which services of the paper do not see."""

from des.observation import Observation
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import Preference

__all__ = ["DataFirst"]


class DataFirst(Preference):
    """D-first: the largest data set first, the lowest EMD among equals. Sees what the paper hides, though not its bids.

    In ``paper`` public bids tell as much: ``dearest`` has the same order.
    """

    summary = "most data first, then lowest EMD; privileged: sees data sizes and EMDs"
    privileged = True

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        hidden = observation.privileged
        assert hidden is not None  # noqa: S101 - the market gives it to every policy that declares it
        return (-hidden.data_size, hidden.emd)
