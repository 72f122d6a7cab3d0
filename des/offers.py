"""Offers are checked, never repaired: constraints (4) and (5), shapes, and which clients exist."""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from des.money import MICRO, Micro, MicroArray, text, to_micro
from des.records import IntArray, Offer
from fl.errors import RunError


class OfferError(RunError):
    """A policy's offer breaks a constraint. Nothing of the round has happened yet; another offer may be made.

    Attributes:
        policy, service, round, client: who offered what, when; ``client`` is None where no single client is at fault.
    """

    def __init__(self, policy: str, service: str, round_: int, client: int | None, problem: str) -> None:
        self.policy, self.service, self.round, self.client = policy, service, round_, client
        where = f"round {round_}" if client is None else f"round {round_}, client {client}"
        super().__init__(f"policy {policy!r} of service {service!r}, {where}: {problem}")


@dataclass(frozen=True, slots=True)
class CheckedOffer:
    """An offer that holds all constraints, its payments in micro-units."""

    clients: IntArray
    payments: MicroArray

    @property
    def total(self) -> Micro:
        """The sum of the payments."""
        return int(self.payments.sum())


def check_offer(
    offer: object,
    *,
    policy: str,
    service: str,
    round_: int,
    bids: MicroArray,
    budget: Micro,
    offline: Set[int] = frozenset(),
) -> CheckedOffer:
    """Return the offer with exact payments, or raise OfferError saying which constraint it breaks.

    Args:
        offer: what the policy returned.
        policy, service, round_: for the message.
        bids: [C] the clients' bids to this service.
        budget: B_m.
        offline: clients that can't be selected.
    """

    def refuse(problem: str, client: int | None = None) -> OfferError:
        return OfferError(policy, service, round_, client, problem)

    if not isinstance(offer, Offer):
        raise refuse(f"act() must return an Offer, not {type(offer).__name__}")
    clients, payments = np.asarray(offer.clients), np.asarray(offer.payments)
    if clients.ndim != 1 or payments.shape != clients.shape:
        raise refuse(
            f"clients and payments must be two lists of one length, not of shapes {clients.shape} and {payments.shape}"
        )
    if not len(clients):
        return CheckedOffer(np.empty(0, np.int64), np.empty(0, np.int64))
    if clients.dtype.kind not in "iu":
        raise refuse(f"clients must be whole numbers, not {clients.dtype}")
    if payments.dtype.kind not in "iuf":
        raise refuse(f"payments must be numbers, not {payments.dtype}")
    for client in clients[(clients < 0) | (clients >= len(bids))]:
        raise refuse(f"there is no such client; clients are 0 to {len(bids) - 1}", int(client))
    chosen, times = np.unique(clients, return_counts=True)
    for client in chosen[times > 1]:
        raise refuse("a client can be wanted only once", int(client))
    for client in chosen.tolist():
        if client in offline:
            raise refuse("the client is offline", client)
    for client in clients[~np.isfinite(payments)]:
        raise refuse("the payment is not a finite number", int(client))
    # Bound before rounding: a float this large would overflow 64-bit micro-units.
    for client in clients[payments > (budget + 1) / MICRO]:
        raise refuse(f"the payment alone is over the budget of {text(budget)} (eq. 4)", int(client))
    exact = to_micro(payments.astype(np.float64))
    wanted = bids[clients]
    for position in np.flatnonzero(exact < wanted):
        raise refuse(
            f"the payment {text(int(exact[position]))} is below the bid {text(int(wanted[position]))} (eq. 5)",
            int(clients[position]),
        )
    checked = CheckedOffer(clients.astype(np.int64), exact)
    if checked.total > budget:
        raise refuse(f"the payments add up to {text(checked.total)}, over the budget of {text(budget)} (eq. 4)")
    return checked
