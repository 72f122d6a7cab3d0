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
STATUS = (Status.WAITING, Status.TRAINING, Status.REACHED, Status.LEFT)  # what the codes of ``Lockstep.status`` mean


@dataclass(frozen=True, slots=True)
class View:
    """An open round of all markets. Arrays [B, M, C]; those of markets that are finished are without meaning."""

    round: IntArray  # [B] n
    asked: BoolArray  # [B, M] which services take part
    available: BoolArray  # [B, M, C] whom each can select
    # the least that each client can be offered: its bid, unless the mechanism asks for more; micro-units
    asks: MicroArray
    budget: MicroArray  # [B, M] what each service may offer, micro-units
    cores: IntArray  # [B] K
    world: World  # what the clients hold and say

    @property
    def dqi(self) -> FloatArray:
        """What services see of Psi (eq. 6)."""
        return self.world.seen


@dataclass(frozen=True, slots=True)
class Closed:
    """What came of a round."""

    round: IntArray  # [B] n
    asked: BoolArray  # [B, M] which services took part
    fate: Fate  # what became of each offer
    reward: FloatArray  # [B, M] r = Omega^accuracy, at most Omega^target; 0 before a service arrives
    status: IntArray  # [B, M] codes of ``STATUS``
    served: IntArray  # [B, M] how many clients served each service
    spent: MicroArray  # [B, M] what it paid, micro-units
    before: FloatArray  # [B, M] the accuracies before the round


def begin(
    playing: BoolArray,  # [B] which markets are not finished
    number: IntArray,  # [B] n
    arrival: IntArray,  # [B, M] the first round of each service
    online: BoolArray,  # [B, C] who can be selected at all
    status: IntArray,  # [B, M] codes of ``STATUS``; those of services that arrive are changed
    budget: MicroArray,  # [B, M]; 0 is put in the place of those that wait
) -> tuple[BoolArray, BoolArray]:
    """Let services arrive; return which take part [B, M], and whom each of them can select [B, M, C]."""
    if _native is not None:
        asked, available = np.empty(status.shape, np.bool_), np.empty((*status.shape, online.shape[1]), np.bool_)
        _native.begin(playing, number, arrival, online, WAITING, TRAINING, status, budget, asked, available)
        return asked, available
    status[playing[:, None] & (status == WAITING) & (arrival <= number[:, None])] = TRAINING
    budget[status == WAITING] = 0
    asked = playing[:, None] & (status == TRAINING)
    return asked, asked[:, :, None] & online[:, None, :]


def settle(
    sums: Sums,  # what services spend and clients receive
    budget: MicroArray,  # [B, M] of the round
    total: MicroArray,  # [B, M] for the whole run
    paid: MicroArray,  # [B, M] what each service has paid; added to
    income: MicroArray,  # [B, C] what each client has received; added to
) -> None:
    """Enter the payments of a round into the books; money is in micro-units."""
    if _native is not None and _native.settle(len(paid), sums.spent, sums.income, budget, total, paid, income):
        return
    if (sums.spent > budget).any():
        raise LedgerError("a service paid more than its budget")
    paid += sums.spent
    income += sums.income
    if (paid.sum(axis=1) != income.sum(axis=1)).any() or (paid > total).any():
        raise LedgerError("clients did not receive the sum that services paid")
