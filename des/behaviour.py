"""What clients ask for their work, given what it costs them: the one seam for client behaviour."""

from abc import ABC, abstractmethod

from des.money import MicroArray


class Behaviour(ABC):
    """Makes a round's bids. They are part of the world, which is drawn first, so they depend on no policy's actions."""

    @abstractmethod
    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        """Return the bids [M, C] of all clients to all services, micro-units, none of them negative.

        Args:
            round_: n, from 1.
            costs: [M, C] what the work costs each client, micro-units; read-only.
        """

    @abstractmethod
    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        """Return the lowest [M] and the highest [M] bids that costs within these ranges can lead to, micro-units.

        Args:
            lowest, highest: [M] the range of the costs for each service, micro-units.
        """


class Truthful(Behaviour):
    """Each client bids its cost, as in the paper."""

    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        """See ``Behaviour.bids``."""
        return costs

    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        """See ``Behaviour.bid_range``."""
        return lowest, highest
