"""What a trained agent went by when it decided, for those who ask afterwards."""

from dataclasses import dataclass

from des.records import Offer
from fl.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Reasons:
    """A decision, and what it followed from."""

    offer: Offer  # what was decided
    q: FloatArray  # [C] how the critic rates each client
    # [C] the chance to be served that the agent saw in an offer of the bid; None if it does not weigh that
    at_bid: FloatArray | None = None
    at_offer: FloatArray | None = None  # [k] the same for what it offered
