"""Offers of many services at once: their order, the checks that every offer passes, and serial selection."""

from dataclasses import dataclass

import numpy as np

from des.money import MicroArray, text
from des.offers import MOST
from fl import selection
from fl.arrays import BoolArray, FloatArray, IntArray
from fl.native import extension
from flmarket.core.errors import RunError

_native = extension("proper")


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
        places = self.market * services
        places += self.service
        places *= clients
        places += self.client
        return places


def by_payment(
    select: BoolArray,  # [B, M, C] clients wanted; of services that take part, clients that are there
    payment: FloatArray,  # [B, M, C] what each would be paid, in units of its bid, at least 1
    bids: MicroArray,  # [B, M, C] micro-units
    budget: MicroArray,  # [B, M] micro-units
) -> Offers:
    """Return the offers that actions make, cut to the budgets by the rule of ``learning.projection``."""
    return Offers(*selection.by_payment(select, payment, bids, budget))


def check(
    offers: Offers,  # of all services
    asks: MicroArray,  # [B, M, C] the least that each client can be offered, micro-units
    available: BoolArray,  # [B, M, C] who can be selected
    budget: MicroArray,  # [B, M] micro-units
    asked: BoolArray,  # [B, M] which services take part
    over_budget: BoolArray,  # [B] whether a service's offers may add up to more than its budget
) -> None:
    """Check offers as ``des.offers.check_offer`` does."""
    if _native is not None and _native.proper(
        *(np.ascontiguousarray(it, np.int64) for it in (offers.market, offers.service, offers.client, offers.payment)),
        np.ascontiguousarray(asks), np.ascontiguousarray(available), np.ascontiguousarray(budget),
        np.ascontiguousarray(asked), over_budget, MOST,
    ):  # fmt: skip
        return
    shape = asks.shape
    where = offers.market, offers.service, offers.client
    for index, most in zip(where, shape, strict=True):
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < most:
            raise LockstepOfferError("an offer names a market, service or client that is not there")
    place = np.ravel_multi_index(where, shape)
    row = place // shape[2]
    most = np.where(over_budget[:, None], MOST, budget)
    for wrong, problem in (
        (np.diff(row, prepend=0) < 0, "offers must stand market by market, service by service"),
        (~asked[where[:2]], "the service does not take part"),
        (~available[where], "the client is offline, or does not serve this service"),
        (offers.payment < asks[where], "the payment is below the bid (eq. 5)"),
        # This comes before the sum: absurd amounts may add up to more than 64 bits can hold.
        (offers.payment > most[where[:2]], "the payment alone is over what the service may offer (eq. 4)"),
    ):
        if wrong.any():
            raise _refused(offers, int(wrong.argmax()), problem)
    if len(place) and np.bincount(place).max() > 1:
        ordered = np.sort(place)
        twice = int(ordered[1:][np.diff(ordered) == 0][0])
        raise _refused(offers, int((place == twice).argmax()), "a client can be offered only one payment")
    total = np.zeros(shape[:2], dtype=np.int64)
    np.add.at(total.reshape(-1), row, offers.payment)
    if (over := (total > budget) & ~over_budget[:, None]).any():
        b, m = np.argwhere(over)[0].tolist()
        raise LockstepOfferError(
            f"market {b}, service {m}: the payments add up to {text(int(total[b, m]))}, over the budget of "
            f"{text(int(budget[b, m]))} (eq. 4)"
        )


def _refused(offers: Offers, at: int, problem: str) -> LockstepOfferError:
    b, m, c = int(offers.market[at]), int(offers.service[at]), int(offers.client[at])
    return LockstepOfferError(f"market {b}, service {m}, client {c}: {problem}")
