"""Offers as tests make and read them, and the feedback that a service gets after a round."""

from collections.abc import Sequence

import numpy as np

from des.observation import Feedback, Offer, Status


def offer_to(clients: Sequence[int], payments: float | Sequence[float] = 1.0) -> Offer:
    """Offer clients payments of their own, or all the same."""
    return Offer(np.array(clients, dtype=np.int64), np.broadcast_to(np.float64(payments), len(clients)))


def by_client(offer: Offer) -> dict[int, float]:
    """Return what each client is offered, in the order of choice."""
    return dict(zip(offer.clients.tolist(), offer.payments.tolist(), strict=True))


def feedback_on(
    offer: Offer,
    served: Sequence[bool],
    accuracy: float = 0.5,
    *,
    losses: float | Sequence[float] = 1.0,
    dropped: Sequence[bool] | None = None,
    round_: int = 1,
) -> Feedback:
    """Feedback on an offer whose winners were paid what they were offered."""
    won = np.array(served, dtype=np.bool_)
    gone = np.zeros_like(won) if dropped is None else np.array(dropped)
    paid, lost = np.where(won, offer.payments, 0.0), np.where(won, losses, np.nan)
    return Feedback(round_, accuracy, 1.0, won, gone, paid, lost, Status.TRAINING)
