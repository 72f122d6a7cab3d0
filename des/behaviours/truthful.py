"""Clients that tell the truth, as in the paper."""

from des.behaviour import Behaviour
from des.money import MicroArray

__all__ = ["Truthful"]


class Truthful(Behaviour):
    """Each client bids its cost, as in the paper.

    Fidelity to Cheng et al. (2023): checked: tests/des/test_behaviour.py::test_truthful_clients_bid_their_costs.
    """

    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        """See ``Behaviour.bids``."""
        return costs

    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        """See ``Behaviour.bid_range``."""
        return lowest, highest
