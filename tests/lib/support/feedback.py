"""The feedback that a service gets after a round."""

from collections.abc import Sequence

import numpy as np

from des.observation import Feedback, Offer, Status


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
