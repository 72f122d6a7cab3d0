"""The reason why an offer was not served, in words: ``flmarket explain`` and the screens go by the same rule."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from des.log_records import Outcome
from des.mechanism import DEFAULT
from des.money import MICRO, Micro
from scenarios.file.schema import STANDING


def holders(offers: Iterable[Any]) -> Mapping[int, Sequence[Any]]:
    """Return the offers of a round that hold a core of each client, in the order of its cores: the lowest payment last.

    That one is what offers that were outbid had to beat. Offers are records, or lines of a data frame.
    """
    by_client = defaultdict(list)
    for offer in sorted((it for it in offers if it.core is not None and it.core == it.core), key=lambda it: it.core):
        by_client[offer.client].append(offer)
    return by_client


def not_served(
    offer: Any,  # a record, or a line of a data frame
    holding: Sequence[Any],  # the ``holders`` of its client; none, as can be in a log that was changed
    mechanism: str,  # the one that cleared the round. Only the paper's is known to go by the payments.
) -> str:
    """Return why an offer was outbid or dropped."""
    if offer.outcome == Outcome.DECLINED:
        return "awarded a core, but it answered that it does nothing; not paid"
    if offer.outcome == Outcome.DROPPED:
        return "awarded a core, but its update did not arrive in time; not paid"
    if mechanism == DEFAULT + STANDING:
        return "not served: the client's cores were at work, or went to others"
    if mechanism != DEFAULT:
        return f"refused by the mechanism {mechanism}"
    if not holding:
        return "outbid, but the log names no service that has a core of the client"
    payment, least, service = offer.payment, holding[-1].payment, holding[-1].service
    if payment < least:
        return f"outbid by {service}: {cash(payment, least)} < {cash(least, payment)}"
    return f"lost the draw against {service}, which pays {cash(least)} too"


def cash(amount: Micro, other: Micro | None = None) -> str:
    """Write money with two decimals, or with as many as distinguish it from another amount."""
    for decimals in range(2, 6):
        text = f"{amount / MICRO:.{decimals}f}"
        distinct = other is None or amount == other or text != f"{other / MICRO:.{decimals}f}"
        if distinct and (amount == 0 or float(text)):
            return text
    return f"{amount / MICRO:.6f}"
