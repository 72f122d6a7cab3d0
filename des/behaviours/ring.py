"""Clients that bid together: rings whose members take turns at the lowest bid."""

import numpy as np

from des.behaviour import Behaviour, Setting
from des.behaviours.markup import LARGEST, marked_up
from des.money import MicroArray
from fl.arithmetic.draws import draw_key, uniforms
from fl.arrays import BoolArray, IntArray
from flmarket.core.plugin_options import in_range, whole

__all__ = ["Ring"]


class Ring(Behaviour):
    """Rings rotate the lowest bid: the member whose turn it is asks the ring's highest cost, the others ask more.

    All clients are put into rings at random, once. For each service, a member whose turn it is asks what the most
    expensive member's data costs for that service; the others make cover bids, which are higher by a share and meant to
    lose. So no client asks less than its cost, members do not compete with each other, and each is cheapest in its
    turn.

    Sources: bid rotation and cover bidding as in OECD, "Guidelines for fighting bid rigging in public procurement",
    2009; rings in theory: McAfee and McMillan, "Bidding rings", American Economic Review 82(3), 1992. The rule by which
    the members' costs become bids is ours.

    Fidelity to OECD (2009), bid rotation and cover bids: checked:
    tests/des/test_behaviour.py::test_members_take_turns_at_the_rings_highest_cost_and_cover_each_other.

    Fidelity to OECD (2009); McAfee and McMillan (1992): interpretation: the rule by which the members' costs become
    bids is ours.
    """

    def __init__(
        self,
        size: int = 4,  # members of a ring, at least 2; the last ring has what is left
        cover: float = 0.2,  # how much more cover bids ask, as a share of the ring's highest cost, 0 to 5
    ) -> None:
        self._size, self._cover = whole("size", size, 2), in_range("cover", cover, 0, LARGEST)
        self._ring: IntArray = np.zeros(0, dtype=np.int64)
        self._highest: MicroArray | None = None

    def begin(self, setting: Setting) -> None:
        draw = uniforms(draw_key(setting.seed, "behaviour"), 0, 0, setting.numbers)[0]
        position = np.empty(setting.clients, dtype=np.int64)
        position[np.argsort(draw, kind="stable")] = np.arange(setting.clients)
        self._ring, self._place = np.divmod(position, self._size)
        self._members = np.bincount(self._ring)[self._ring]
        self._highest = setting.highest

    def turn(self, round_: int) -> BoolArray:
        """Return whose turn it is in a round, [C]: one member of each ring."""
        turn: BoolArray = self._place == round_ % self._members
        return turn

    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        highest = np.zeros((len(costs), int(self._ring.max()) + 1), dtype=np.int64)
        np.maximum.at(highest, (np.arange(len(costs))[:, None], self._ring), costs)
        dearest = highest[:, self._ring]
        return np.where(self.turn(round_), dearest, marked_up(dearest, self._cover))

    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        most = highest if self._highest is None else np.maximum(highest, self._highest)
        return lowest, marked_up(most, self._cover)
