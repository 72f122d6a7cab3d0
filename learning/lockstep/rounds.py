"""A round of markets in lockstep: what it begins with, and what comes of it."""

from dataclasses import dataclass

from des.money import MicroArray
from fl.arrays import BoolArray, FloatArray, IntArray
from learning.lockstep.clearing import Fate
from learning.lockstep.worlds import World


@dataclass(frozen=True, slots=True)
class View:
    """An open round of all markets. Arrays [B, M, C]; those of markets that are finished are without meaning.

    Attributes:
        round: [B] n.
        asked: [B, M] which services take part.
        available: [B, M, C] whom each can select.
        asks: the least that each client can be offered: its bid, unless the mechanism asks for more; micro-units.
        budget: [B, M] what each service may offer, micro-units.
        cores: [B] K.
        world: what the clients hold and say.
    """

    round: IntArray
    asked: BoolArray
    available: BoolArray
    asks: MicroArray
    budget: MicroArray
    cores: IntArray
    world: World

    @property
    def dqi(self) -> FloatArray:
        """What services see of Psi (eq. 6)."""
        return self.world.seen


@dataclass(frozen=True, slots=True)
class Closed:
    """What came of a round.

    Attributes:
        round: [B] n.
        asked: [B, M] which services took part.
        fate: what became of each offer.
        reward: [B, M] r = Omega^accuracy, at most Omega^target; 0 before a service arrives.
        status: [B, M] codes of ``markets.STATUS``.
        served: [B, M] how many clients served each service.
        spent: [B, M] what it paid, micro-units.
        before: [B, M] the accuracies before the round.
    """

    round: IntArray
    asked: BoolArray
    fate: Fate
    reward: FloatArray
    status: IntArray
    served: IntArray
    spent: MicroArray
    before: FloatArray
