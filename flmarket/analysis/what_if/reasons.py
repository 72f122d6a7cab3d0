"""Why an offer was not served, in words: ``flmarket explain`` and the order book of the screens use the same."""

from des.mechanisms.mechanism import DEFAULT
from des.money import MICRO, Micro

DROPPED = "awarded a core, but its update did not arrive in time; not paid"


def refused(
    payment: Micro,  # what was offered, micro-units
    # of those that have a core of the client, the service with the lowest payment, and that; None if there is none, as
    # can be in a log that was changed
    lowest: tuple[str, Micro] | None,
    mechanism: str,  # the one that cleared the round. Only the paper's is known to go by the payments.
) -> str:
    """Return why an offer was refused."""
    if mechanism != DEFAULT:
        return f"refused by the mechanism {mechanism}"
    if lowest is None:
        return "outbid, but the log names no service that has a core of the client"
    service, least = lowest
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
