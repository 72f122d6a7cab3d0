"""Waiting for all: the paper's rule, with one group of clients at a time; or for the first so many of them."""

from fl.training.trigger import Gathered, Trigger
from flmarket.core.plugin_options import whole

__all__ = ["WaitForAll"]


class WaitForAll(Trigger):
    """A new model once every client at work has delivered or is lost; nobody is recruited before. The paper's.

    With ``first``, once so many have delivered: who recruits more than that over-selects. Those that deliver later are
    paid, and their updates are not used (Bonawitz et al., 2019).

    Fidelity to Bonawitz et al. (2019): checked:
    tests/fl/training/test_triggers.py::test_who_waits_for_the_first_recruits_again_once_they_are_there_and_takes_nothing_from_the_late.

    Fidelity to Cheng et al. (2023): checked:
    tests/fl/training/test_triggers.py::test_who_waits_for_all_recruits_nobody_meanwhile.
    """

    def __init__(self, *, first: int | None = None) -> None:
        """Take how many updates are enough; None for those of all clients."""
        self._first = None if first is None else whole("first", first, 1)

    def due(self, gathered: Gathered) -> bool:
        enough = self._first is not None and gathered.arrived >= self._first
        return enough or gathered.at_work == gathered.late

    def recruits(self, gathered: Gathered) -> bool:
        in_time = gathered.at_work - gathered.late
        return in_time == 0 or (self._first is not None and gathered.arrived + in_time < self._first)

    def share(self, staleness: int) -> float:
        return 1.0 if staleness == 0 else 0.0
