"""HQFA, a benchmark of the paper: the highest DQI first."""

from des.observation import Observation
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import Preference

__all__ = ["HighQualityFirst"]


class HighQualityFirst(Preference):
    """HQFA: the highest DQI first.

    Fidelity to Cheng et al. (2023): checked:
    tests/learning/client_selection/test_selection.py::test_preference_with_all_the_money_in_the_world.
    """

    summary = "highest data quality indicator first (the paper's HQFA)"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        return (-observation.dqi,)
