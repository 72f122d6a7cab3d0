"""Worth: says what each client is worth, by its data quality, and lets the mechanism find the price."""

import numpy as np

from des.money import MICRO, to_micro
from des.records import Observation, Offer
from learning.policy import Policy, PolicyContext
from learning.selection import fill_budget


class Worth(Policy):
    """Offers each client what its data are worth: money in proportion to its DQI, where that is at least what it asks.

    The best ratio of worth to bid comes first. Under a mechanism that keeps budgets it names all such clients; under
    the others, those that its budget can pay.
    """

    summary = "offers what clients are worth by their data quality, best worth per bid first"

    def __init__(self, context: PolicyContext, *, markup: float = 1.5) -> None:
        """Fix how much quality is worth.

        Args:
            context: the market.
            markup: what a client of mean DQI is worth, in mean bids of the round; above 0.

        Raises:
            ValueError: it is out of range.
        """
        super().__init__(context)
        if not 0 < markup < float("inf"):
            raise ValueError(f"markup must be a finite number above 0, not {markup}")
        self._markup = markup

    def act(self, observation: Observation) -> Offer:
        """Offer what clients are worth."""
        bids, quality = observation.own_bids, np.maximum(observation.dqi, 0)
        mean = float(quality.mean())
        unit = self._markup * float(bids.mean()) / mean if mean else 0.0
        worth = to_micro(unit * quality) / MICRO
        wanted = observation.available & (worth >= bids)
        shuffled = observation.rng().permutation(observation.clients)
        ratio = worth / np.where(bids > 0, bids, 1 / MICRO)
        order = shuffled[np.argsort(-ratio[shuffled], kind="stable")]
        return fill_budget(order, worth, observation.offer_limit, available=wanted)
