"""Random, a benchmark of the paper: clients in a random order."""

from des.observation import Observation
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import Preference

__all__ = ["RandomPolicy"]


class RandomPolicy(Preference):
    """Random: clients in a random order under constraints (2)-(5).

    Fidelity to Cheng et al. (2023): checked:
    tests/learning/client_selection/test_selection.py::test_random_prefers_nobody.
    """

    summary = "clients in random order (the paper's Random)"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        return ()
