"""LCFA, a benchmark of the paper: the lowest bids first."""

from des.observation import Observation
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import Preference

__all__ = ["LowCostFirst"]


class LowCostFirst(Preference):
    """LCFA: the lowest bids first, so as many clients as possible.

    Fidelity to Cheng et al. (2023): checked:
    tests/learning/client_selection/test_selection.py::test_preference_with_all_the_money_in_the_world.
    """

    summary = "lowest bids first, as many clients as possible (the paper's LCFA)"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        return (observation.own_bids,)
