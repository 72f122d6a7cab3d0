"""A round of markets in lockstep: what it begins with, and what comes of it."""

from dataclasses import dataclass

import numpy as np

from des.ledger import LedgerError
from des.money import MicroArray
from des.records import Status
from fl.arrays import BoolArray, FloatArray, IntArray
from fl.native import extension
from learning.lockstep.clearing import Fate, Sums
from learning.lockstep.worlds import World

_native = extension("begin", "settle")

WAITING, TRAINING, REACHED, LEFT = range(4)
STATUS = (Status.WAITING, Status.TRAINING, Status.REACHED, Status.LEFT)
"""What the codes of ``Lockstep.status`` mean."""


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
        status: [B, M] codes of ``STATUS``.
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


def begin(
    playing: BoolArray, number: IntArray, arrival: IntArray, online: BoolArray, status: IntArray, budget: MicroArray
) -> tuple[BoolArray, BoolArray]:
    """Let services arrive; return which take part [B, M], and whom each of them can select [B, M, C].

    Args:
        playing: [B] which markets are not finished.
        number: [B] n.
        arrival: [B, M] the first round of each service.
        online: [B, C] who can be selected at all.
        status: [B, M] codes of ``STATUS``; those of services that arrive are changed.
        budget: [B, M]; 0 is put in the place of those that wait.
    """
    if _native is not None:
        asked, available = np.empty(status.shape, np.bool_), np.empty((*status.shape, online.shape[1]), np.bool_)
        _native.begin(playing, number, arrival, online, WAITING, TRAINING, status, budget, asked, available)
        return asked, available
    status[playing[:, None] & (status == WAITING) & (arrival <= number[:, None])] = TRAINING
    budget[status == WAITING] = 0
    asked = playing[:, None] & (status == TRAINING)
    return asked, asked[:, :, None] & online[:, None, :]


def settle(sums: Sums, budget: MicroArray, total: MicroArray, paid: MicroArray, income: MicroArray) -> None:
    """Enter the payments of a round into the books; money is in micro-units.

    Args:
        sums: what services spend and clients receive.
        budget: [B, M] of the round.
        total: [B, M] for the whole run.
        paid: [B, M] what each service has paid; added to.
        income: [B, C] what each client has received; added to.

    Raises:
        LedgerError: a service is over a budget, or clients do not receive what services pay.
    """
    if _native is not None and _native.settle(len(paid), sums.spent, sums.income, budget, total, paid, income):
        return
    if (sums.spent > budget).any():
        raise LedgerError("a service paid more than its budget")
    paid += sums.spent
    income += sums.income
    if (paid.sum(axis=1) != income.sum(axis=1)).any() or (paid > total).any():
        raise LedgerError("clients did not receive the sum that services paid")
