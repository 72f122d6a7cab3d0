"""Serial selection for many services at once: clients by falling payment, as far as each budget goes (eq. 4)."""

import numpy as np

from fl.arithmetic.native import extension
from fl.arrays import BoolArray, FloatArray, IntArray

_native = extension("choose")


def by_payment(
    wanted: BoolArray,  # [B, M, C] whom each service wants
    payment: FloatArray,  # [B, M, C] what each would be paid, in units of its bid, at least 1
    bids: IntArray,  # [B, M, C] micro-units
    budget: IntArray,  # [B, M] micro-units
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Choose clients for each service of each market; see ``learning.environments.projection`` for the rule.

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
