"""The reason why an offer was not served, in words: ``flmarket explain`` and the screens go by the same rule."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from des.clock import Microseconds
from des.log_records import Outcome
from des.mechanism import DEFAULT
from des.money import MICRO, Micro
from scenarios.file.schema import IN_TURN, STANDING

BY_PAYMENTS = frozenset({DEFAULT, DEFAULT + STANDING})
"""What rounds are cleared by where the highest payments win, and are paid."""

_HIGHEST_WIN = frozenset({DEFAULT, "uniform-price"})


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
    mechanism: str,  # the one that cleared the round
    # where cores are cleared as they come free: how many the client has, and when the offer expired
    cores: int = 1,
    expired: Microseconds = 0,
    *,
    gone: bool = False,  # whether the client went offline as the work of the offer ended
) -> str:
    """Return why an offer was outbid or dropped."""
    if offer.outcome == Outcome.DECLINED:
        return "awarded a core, but it answered that it does nothing; not paid"
    if offer.outcome == Outcome.DROPPED and gone:
        return f"awarded a core, but it went offline at {offer.end / MICRO:.2f} s, and its work was lost; not paid"
    if offer.outcome == Outcome.DROPPED:
        return "awarded a core, but its update did not arrive in time; not paid"
    if mechanism.endswith(STANDING):
        return _expired(offer, holding, mechanism.removesuffix(STANDING), cores, expired)
    if mechanism.removesuffix(IN_TURN) not in _HIGHEST_WIN:
        return f"refused by the mechanism {mechanism}"
    if not holding:
        return "outbid, but the log names no service that has a core of the client"
    payment, least, service, paid = offer.payment, holding[-1].payment, holding[-1].service, holding[-1].paid
    pays = f", which pays {cash(paid)}" if paid != least and (paid or 0) > 0 else ""
    if payment < least:
        return f"outbid by {service}{pays}: {cash(payment, least)} < {cash(least, payment)}"
    return f"lost the draw against {service}{pays or f', which pays {cash(least)} too'}"


def _expired(offer: Any, holding: Sequence[Any], mechanism: str, cores: int, expired: Microseconds) -> str:
    """Return why nobody was at work for an offer before it expired; those are holders that were at work meanwhile."""
    reasons = []
    for other in sorted((it for it in holding if it.round == offer.round), key=lambda it: it.start):
        at = f"at {other.start / MICRO:.2f} s"
        if mechanism != DEFAULT:
            reasons.append(f"{at} the mechanism {mechanism} gave the core to {other.service}")
        elif offer.payment < other.payment:
            amounts = f"{cash(offer.payment, other.payment)} < {cash(other.payment, offer.payment)}"
            reasons.append(f"outbid {at} by {other.service}: {amounts}")
        else:
            reasons.append(f"lost the draw {at} against {other.service}, which pays {cash(other.payment)} too")
    if reasons:
        return ", and ".join(reasons)
    at = f"the offer expired at {expired / MICRO:.2f} s"
    busy = sorted((it for it in holding if it.end >= expired), key=lambda it: it.end)
    if len(busy) < cores:
        return f"{at}, and the client took no {'more ' * bool(holding)}work before that"
    return f"its core was at work for {busy[0].service} until {busy[0].end / MICRO:.2f} s, and {at}"


def at_work(job: Any) -> str:
    """Return why a service could not have a client that was at work for it, by an earlier offer."""
    return f"at work for it {span(job)}"


def span(job: Any) -> str:
    """Return when the client of an offer was at work."""
    return f"from {job.start / MICRO:.2f} s to {job.end / MICRO:.2f} s"


def cash(amount: Micro, other: Micro | None = None) -> str:
    """Write money with two decimals, or with as many as distinguish it from another amount."""
    for decimals in range(2, 6):
        text = f"{amount / MICRO:.{decimals}f}"
        distinct = other is None or amount == other or text != f"{other / MICRO:.{decimals}f}"
        if distinct and (amount == 0 or float(text)):
            return text
    return f"{amount / MICRO:.6f}"
