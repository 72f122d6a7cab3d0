"""Random, a benchmark of the paper: clients in a random order."""

from des.observation import Observation
from fl.arrays import FloatArray, IntArray
from learning.client_selection.selection import Preference

__all__ = ["RandomPolicy"]


class RandomPolicy(Preference):
    """Random: clients in a random order under constraints (2)-(5)."""

    summary = "clients in random order (the paper's Random)"

    def keys(self, observation: Observation) -> tuple[FloatArray | IntArray, ...]:
        return ()
