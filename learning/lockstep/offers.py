"""Offers of many services at once: their order, the checks that every offer passes, and serial selection."""

from dataclasses import dataclass

import numpy as np

from des.money import MicroArray, text
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.errors import RunError
from learning.environments import projection as selection


class LockstepOfferError(RunError):
    """Offers break a constraint; names the first. Nothing of the round has happened yet."""


@dataclass(frozen=True, slots=True)
class Offers:
    """The offers of a round, one entry for each: market by market, service by service, in the order of choice."""

    market: IntArray  # [offers] b
    service: IntArray  # [offers] m
    client: IntArray  # [offers] c
    payment: MicroArray  # [offers] micro-units

    def places(self, shape: tuple[int, ...]) -> IntArray:
        """Return where each offer stands in an array [B, M, C], laid out flat; that all are there is not checked."""
        _, services, clients = shape
        return (self.market * services + self.service) * clients + self.client


def by_payment(
    select: BoolArray,  # [B, M, C] clients wanted; of services that take part, clients that are there
    payment: FloatArray,  # [B, M, C] what each would be paid, in units of its bid, at least 1
    bids: MicroArray,  # [B, M, C] micro-units
    budget: MicroArray,  # [B, M] micro-units
) -> Offers:
    """Return the offers that actions make, cut to the budgets by the rule of ``learning.environments.projection``."""
    return Offers(*selection.by_payment(select, payment, bids, budget))


def check(
    offers: Offers,  # of all services
    bids: MicroArray,  # [B, M, C] micro-units
    available: BoolArray,  # [B, M, C] who can be selected
    budget: MicroArray,  # [B, M] micro-units
    asked: BoolArray,  # [B, M] which services take part
) -> None:
    """Check offers as ``des.offer_checks.check_offer`` does."""
    where = offers.market, offers.service, offers.client
    for index, most in zip(where, bids.shape, strict=True):
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < most:
            raise LockstepOfferError("an offer names a market, service or client that is not there")
    row = offers.market * bids.shape[1] + offers.service
    for wrong, problem in (
        (np.diff(row, prepend=0) < 0, "offers must stand market by market, service by service"),
        (~asked[where[:2]], "the service does not take part"),
        (~available[where], "the client is offline"),
        (offers.payment < bids[where], "the payment is below the bid (eq. 5)"),
        # This comes before the sum: absurd amounts may add up to more than 64 bits can hold.
        (offers.payment > budget[where[:2]], "the payment alone is over the budget (eq. 4)"),
        (_repeated(offers.places(bids.shape)), "a client can be offered only one payment"),
    ):
        if wrong.any():
            b, m, c = (int(index[wrong.argmax()]) for index in where)
            raise LockstepOfferError(f"market {b}, service {m}, client {c}: {problem}")
    total = np.zeros(budget.shape, dtype=np.int64)
    np.add.at(total.reshape(-1), row, offers.payment)
    if (over := total > budget).any():
        b, m = np.argwhere(over)[0].tolist()
        raise LockstepOfferError(
            f"market {b}, service {m}: the payments add up to {text(int(total[b, m]))}, over the budget of "
            f"{text(int(budget[b, m]))} (eq. 4)"
        )


def _repeated(places: IntArray) -> BoolArray:
    """Return which entries occur more than once."""
    _, inverse, counts = np.unique(places, return_inverse=True, return_counts=True)
    repeated: BoolArray = counts[inverse] > 1
    return repeated
