"""Offers are checked, never repaired: constraints (4) and (5), shapes, and whether the clients exist."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from des.money import MICRO, Micro, MicroArray, text, to_micro
from des.observation import Offer
from fl.arrays import BoolArray, FloatArray, IntArray, read_only
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import method

MOST = 10**13
"""The most that one offer can name where the budget does not limit it, micro-units: ten million units of money."""


class OfferError(RunError):
    """A policy's offer breaks a constraint. Nothing of the round has happened yet; another offer can be made.

    Attributes:
        policy, service, round, client: who offered what, when; ``client`` is None if no single client is concerned.
        problem: what is wrong with the offer.
    """

    def __init__(self, policy: str, service: str, round_: int, client: int | None, problem: str) -> None:
        super().__init__(policy, service, round_, client, problem)
        self.policy, self.service, self.round, self.client, self.problem = policy, service, round_, client, problem

    def made_by(self, policy: object) -> "OfferError":
        """Return this error with the place of the method that made the offer."""
        problem = f"{self.problem}; offered by {method(policy, 'act')}"
        return OfferError(self.policy, self.service, self.round, self.client, problem)

    def __str__(self) -> str:
        where = f"round {self.round}" if self.client is None else f"round {self.round}, client {self.client}"
        return f"policy {self.policy!r} of service {self.service!r}, {where}: {self.problem}"


@dataclass(frozen=True, slots=True)
class CheckedOffer:
    clients: IntArray  # [k] as in ``Offer``
    payments: MicroArray  # [k] micro-units
    total: Micro  # the sum of the payments

    def and_then(self, *later: "CheckedOffer") -> "CheckedOffer":
        """Return this offer, followed by those that the same service has made later in the round."""
        each = self, *later
        return CheckedOffer(
            np.concatenate([it.clients for it in each]),
            np.concatenate([it.payments for it in each]),
            sum(it.total for it in each),
        )


_NOBODY = CheckedOffer(read_only(np.empty(0, dtype=np.int64)), read_only(np.empty(0, dtype=np.int64)), 0)


def read_offer(
    offer: object,  # what the policy returned: its clients and payments may be lists, too, and any kinds of numbers
    *,
    policy: str,  # who offered, and when: for the message
    service: str,
    round_: int,
    clients: int,  # C
) -> Offer:
    """Return the offer in read-only arrays of its own, int64 and float64, of clients that exist."""
    return Offer(*_read(offer, clients, partial(OfferError, policy, service, round_)))


def _read(
    offer: object,
    clients: int,  # C
    refuse: Callable[[int | None, str], OfferError],  # makes the error, given a client, if one is concerned
) -> tuple[IntArray, FloatArray]:
    if not isinstance(offer, Offer):
        raise refuse(None, f"act() must return an Offer, not {type(offer).__name__}")

    try:
        wanted, payments = np.asarray(offer.clients), np.asarray(offer.payments)
    except ValueError as error:  # lists of different lengths
        raise refuse(None, f"clients and payments must be lists of the same length: {error}") from error
    if isinstance(offer.clients, np.ma.MaskedArray) or isinstance(offer.payments, np.ma.MaskedArray):
        raise refuse(None, "clients and payments must be plain arrays; what masked ones hide would be offered, too")
    if wanted.ndim != 1 or payments.shape != wanted.shape:
        raise refuse(
            None,
            f"clients and payments must be lists of the same length, not of shapes {wanted.shape} and {payments.shape}",
        )
    if not len(wanted):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
    if wanted.dtype.kind not in "iu":
        raise refuse(None, f"clients must be whole numbers, not {wanted.dtype}")
    if payments.dtype.kind not in "iuf":
        raise refuse(None, f"payments must be numbers, not {payments.dtype}")
    known, payments = wanted.astype(np.int64), payments.astype(np.float64)
    unknown = known.view(np.uint64) >= clients  # as are negative ones
    if np.count_nonzero(unknown):
        raise refuse(int(wanted[unknown][0]), f"unknown client; clients are 0 to {clients - 1}")
    wanted = known
    wanted.setflags(write=False)
    payments.setflags(write=False)
    return wanted, payments


def check_offer(
    offer: object,  # what the policy returned
    *,
    policy: str,  # who offered, and when: for the message
    service: str,
    round_: int,
    # [C] the least that each client can be offered, micro-units: its bid, unless the mechanism asks for more
    bids: MicroArray,
    budget: Micro,  # B_m, micro-units, or what is left of it
    offline: frozenset[int] = frozenset(),  # clients that cannot be selected
    # [C] whether a client does not serve at the price that the mechanism asks for, or has refused already; None if all
    # serve
    unwilling: BoolArray | None = None,
    turn: int | None = None,  # the client whose turn it is, where they come one after another: others are unwilling
    over_budget: bool = False,  # whether the offers may add up to more than the budget, because the mechanism keeps it
) -> CheckedOffer:
    """Return the offer with exact payments."""
    refuse = partial(OfferError, policy, service, round_)
    clients, offered = _read(offer, len(bids), refuse)
    if not len(clients):
        return _NOBODY
    most, least, count = (MOST if over_budget else budget + 1) / MICRO, bids[clients], len(clients)
    # An absurd amount may be too large to count in micro-units.
    payments = to_micro(offered[(offered >= 0) & (offered <= most)])
    if (
        len(payments) < count
        or (count > 1 and _count_different(clients, len(bids)) < count)
        or np.count_nonzero(payments >= least) < count
        or (offline and not offline.isdisjoint(clients.tolist()))
        or (unwilling is not None and np.count_nonzero(unwilling[clients]))
    ):
        limit = text(MOST) if over_budget else f"the budget of {text(budget)} (eq. 4)"
        earlier: set[int] = set()
        for client, payment, bid in zip(*(column.tolist() for column in (clients, offered, least)), strict=True):
            if client in earlier:
                raise refuse(client, "a client can be offered only one payment")
            if client in offline:
                raise refuse(client, "the client is offline")
            if unwilling is not None and unwilling[client]:
                problem = "the client does not serve this service in this round, or has refused it already"
                if turn not in (None, client):
                    problem = f"it is the turn of client {turn}; only that one may be offered to"
                raise refuse(client, problem)
            if not 0 <= payment <= most:
                raise refuse(client, _out_of_range(payment, limit))
            if (amount := to_micro(payment)) < bid:
                raise refuse(client, f"the payment {text(amount)} is below the bid {text(bid)} (eq. 5)")
            earlier.add(client)
    total = sum(payments.tolist())
    if total > budget and not over_budget:
        raise refuse(None, f"the payments add up to {text(total)}, over the budget of {text(budget)} (eq. 4)")
    return CheckedOffer(clients, payments, total)


def _count_different(clients: IntArray, among: int) -> int:
    """Return how many different clients there are."""
    named = np.zeros(among, dtype=np.bool_)
    named[clients] = True
    return int(np.count_nonzero(named))


def _out_of_range(payment: float, limit: str) -> str:
    if not math.isfinite(payment):
        return "the payment is not a finite number"
    return "the payment is negative (eq. 5)" if payment < 0 else f"the payment alone is over {limit}"
