"""The one place where an RL action that costs too much becomes an offer within the budget.

Policies' offers never come here: the market refuses those that break the budget. But nearly every random action of an
exploring agent is over it. Ours is the paper's serial selection: no payment is ever changed, an action within the
budget passes unchanged, and payments also express which clients the agent wants most.
"""

import numpy as np
import numpy.typing as npt

from des.money import MICRO, to_micro
from des.observation import Offer
from fl.arithmetic.serial_selection import by_payment
from fl.arrays import BoolArray, FloatArray
from flmarket.core.errors import RunError


class ActionError(RunError):
    """An action is not in the action space, or came out of turn."""


def project(
    select: BoolArray,  # [C] clients wanted
    payment: FloatArray,  # [C] what each would be paid, in units of its bid, at least 1 (eq. 5)
    bids: FloatArray,  # [C] money
    budget: float,  # B_m, money
) -> Offer:
    """Return the offer that an action makes, cut to the budget (eq. 4) by serial selection.

    Selected clients are taken in the order of falling payment (in units of their bids); of equals the lower bid goes
    first, then the lower index. Each gets its payment in full; a client that no longer fits the budget is skipped.
    """
    one = (None, None)  # service of one market
    _, _, chosen, prices = by_payment(
        select[one], payment[one], to_micro(bids)[one], np.array([[to_micro(budget)]], dtype=np.int64)
    )
    return Offer(chosen, prices / MICRO)


def checked(
    select: npt.ArrayLike, payment: npt.ArrayLike, clients: int, payment_limit: float
) -> tuple[BoolArray, FloatArray]:
    """Return an action's parts [C] as arrays."""
    wanted, paid = np.asarray(select), np.asarray(payment, dtype=np.float64)
    for name, part in (("select", wanted), ("payment", paid)):
        if part.shape != (clients,):
            raise ActionError(f"{name} must hold {clients} values, one for each client, not have shape {part.shape}")
        if not np.isfinite(part).all():
            raise ActionError(f"{name} holds a value that is not finite")
    if not np.isin(wanted, (0, 1)).all():
        raise ActionError("select must hold zeros and ones")
    if ((paid < 1) | (paid > payment_limit)).any():
        raise ActionError(f"payment must lie between 1 and {payment_limit} bids")
    return wanted.astype(np.bool_), paid
