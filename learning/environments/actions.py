"""Actions of RL agents: the markets that they can play, and how one that costs too much becomes an affordable offer.

Policies' offers never come here: the market refuses those that break the budget. But nearly every random action of an
exploring agent is over it. Ours is the paper's serial selection: no payment is ever changed, an action within the
budget passes unchanged, and payments also express which clients the agent wants most.
"""

import numpy as np
import numpy.typing as npt

from des.market import Market
from des.mechanism import Mechanism
from des.money import MICRO, to_micro
from des.observation import Offer
from fl.arithmetic.native import extension
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.errors import RunError

_native = extension("choose")


class ActionError(RunError):
    """An action is not in the action space, or came out of turn."""


def project(
    select: BoolArray,  # [C] clients wanted
    payment: FloatArray,  # [C] what each would be paid, in units of its bid, at least 1 (eq. 5)
    bids: FloatArray,  # [C] money
    budget: float,  # B_m, money
) -> Offer:
    """Return the offer that an action makes, cut to the budget (eq. 4) by serial selection (``by_payment``)."""
    one = (None, None)  # service of one market
    _, _, chosen, prices = by_payment(
        select[one], payment[one], to_micro(bids)[one], np.array([[to_micro(budget)]], dtype=np.int64)
    )
    return Offer(chosen, prices / MICRO)


def by_payment(
    wanted: BoolArray,  # [B, M, C] whom each service wants
    payment: FloatArray,  # [B, M, C] what each would be paid, in units of its bid, at least 1
    bids: IntArray,  # [B, M, C] micro-units
    budget: IntArray,  # [B, M] micro-units
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Choose clients for each service of each market: market, service, client and price of each offer.

    Selected clients are taken in the order of falling payment; of equals the lower bid goes first, then the lower
    index. A client that no longer fits the budget is skipped.
    """
    if _native is None:
        return _by_payment(wanted, payment, bids, budget)
    market, service, client, price = np.empty((4, wanted.size), dtype=np.int64)
    chosen = _native.choose(
        *budget.shape,
        np.ascontiguousarray(wanted, np.bool_),
        np.ascontiguousarray(payment, np.float64),
        np.ascontiguousarray(bids, np.int64),
        np.ascontiguousarray(budget, np.int64),
        market,
        service,
        client,
        price,
    )
    return market[:chosen], service[:chosen], client[:chosen], price[:chosen]


def _by_payment(
    wanted: BoolArray, payment: FloatArray, bids: IntArray, budget: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    payment = np.where(wanted, payment, 1.0)  # of others it may be anything, NaN too
    order = np.lexsort((bids, -payment))  # stable: of equals, the lower index first
    price = np.take_along_axis(np.maximum(bids, np.rint(payment * bids).astype(np.int64)), order, axis=-1)
    wanted = np.take_along_axis(wanted, order, axis=-1)
    left, taken = budget.copy(), np.zeros(wanted.shape, dtype=np.bool_)
    for place in range(wanted.shape[-1]):
        fits = wanted[..., place] & (price[..., place] <= left)
        taken[..., place] = fits
        left -= price[..., place] * fits
    market, service, _ = taken.nonzero()
    return market, service, order[taken], price[taken]


def read_action(
    select: npt.ArrayLike, payment: npt.ArrayLike, clients: int, payment_limit: float
) -> tuple[BoolArray, FloatArray]:
    """Return an action's parts [C] as arrays."""
    wanted, paid = np.asarray(select), np.asarray(payment, dtype=np.float64)
    for name, part in (("select", wanted), ("payment", paid)):
        if part.shape != (clients,):
            raise ActionError(f"{name} must hold {clients} values, one for each client, not have shape {part.shape}")
        if not (finite := np.isfinite(part)).all():
            wrong = finite.argmin()
            raise ActionError(f"{name} holds a value that is not finite: value {wrong} is {part[wrong]:g}")
    if not np.isin(wanted, (0, 1)).all():
        raise ActionError("select must hold zeros and ones")
    if ((paid < 1) | (paid > payment_limit)).any():
        raise ActionError(f"payment must lie between 1 and {payment_limit} bids")
    return wanted.astype(np.bool_), paid


def require_in_range(gamma: float, payment_limit: float) -> None:
    """Refuse a discount factor or a highest payment that no environment can have."""
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be in (0, 1], not {gamma}")
    if not 1 < payment_limit < float("inf"):
        raise ValueError(f"payment_limit must be a finite number above 1, not {payment_limit}")


def require_one_offer(market: Market) -> None:
    """Refuse a market whose rounds an environment cannot play: a service has one action, which may pay the bid."""
    mechanism = market.mechanism
    if market.sequential:
        raise ValueError("clients come one after another (market.impressions); an environment plays one offer a round")
    if reason := more_than_one_offer(mechanism):
        plays = "an environment plays one a round" if mechanism.steps > 1 else "the environments know bids only"
        raise ValueError(f"mechanism {type(mechanism).__name__} {reason}; {plays}")


def more_than_one_offer(mechanism: Mechanism) -> str:
    """Return what a mechanism does that one action a round, priced from the bids, cannot play; empty if nothing."""
    if mechanism.steps > 1:
        return f"takes offers in {mechanism.steps} steps"
    return "posts prices of its own" if type(mechanism).ask is not Mechanism.ask else ""
