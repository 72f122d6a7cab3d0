"""HQFA, a benchmark of the paper: the highest DQI first."""

from des.observation import Observation
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import Preference

__all__ = ["HighQualityFirst"]


class HighQualityFirst(Preference):
    """HQFA: the highest DQI first."""

    summary = "highest data quality indicator first (the paper's HQFA)"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        return (-observation.dqi,)
