"""Worth: says what each client is worth, by its data quality, and lets the mechanism find the price."""

from collections.abc import Sequence

import numpy as np

from des.money import MICRO, to_micro
from des.observation import Observation, Offer
from des.offer_checks import MOST
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.plugin_options import in_range
from learning.client_selection.selection import fill_budget, ranking
from learning.client_selection.set_worth import offer_to_union, union_parameters
from learning.policy import NEXT_TO_NONE, Policy, PolicyContext

__all__ = ["Worth"]


def name_best(
    worth: FloatArray,  # [C] money with six decimals
    asked: FloatArray,  # [C] the least that each can be offered, money
    limit: float,  # what the payments may add up to, money; ``observation.offer_limit``
    *,
    available: BoolArray,  # [C] who can be selected
    order: IntArray,  # [C] all clients; of equal ratios, the first in this order goes first
    payments: FloatArray | None = None,  # [C] what is offered in place of the worth
) -> Offer:
    """Offer clients what they are worth, where that is at least what they ask; the best worth per ask comes first."""
    wanted = available & (worth >= asked)
    ratio = worth / np.where(asked > 0, asked, 1 / MICRO)
    best_first = order[np.argsort(-ratio[order], kind="stable")]
    return fill_budget(best_first, worth if payments is None else payments, limit, available=wanted)


class Worth(Policy):
    """Offers each client what its data are worth: money in proportion to its DQI, where that is at least what it asks.

    What a unit of DQI is worth is fixed before the first round, by the public ranges of costs and of the DQI: what
    clients ask or report moves nobody's value.

    The best ratio of worth to bid comes first. Under a mechanism that keeps budgets it names all such clients; under
    the others, those that its budget can pay. As a union, each client is offered what it adds to those before it, so
    that the offers add up to what they are worth together.
    """

    summary = "offers what clients are worth by their data quality, best worth per bid first"

    def __init__(
        self,
        context: PolicyContext,  # the market
        *,
        markup: float = 1.5,  # what a client is worth whose DQI is half-way in its range, in half-way costs; above 0
        values: Sequence[float] | None = None,  # [C] what each client is worth in every round, money, whatever its DQI
        together: str = "additive",  # what clients are worth together: additive or union
    ) -> None:
        super().__init__(context)
        self._union = union_parameters(context, together)
        if self._union is not None and values is not None:
            raise ValueError('values are each client\'s own; leave them out, or together = "union"')
        markup = in_range("markup", markup, 0, above=True)
        self._values = None if values is None else _checked(values, context.clients)
        if self._values is None:
            data = context.data
            self._unit = markup * data.middle_cost / data.middle_quality if data.middle_quality > NEXT_TO_NONE else 0.0

    def act(self, observation: Observation) -> Offer:
        if self._union is not None:
            return offer_to_union(observation, self._union, self._unit)
        bids = observation.own_bids
        worth = self._values
        if worth is None:
            worth = to_micro(np.clip(self._unit * observation.dqi, 0, MOST / MICRO)) / MICRO
        order = ranking(observation)
        return name_best(worth, bids, observation.offer_limit, available=observation.available, order=order)


def _checked(values: Sequence[float], clients: int) -> FloatArray:
    worth = np.asarray(values)
    if worth.shape != (clients,) or worth.dtype.kind not in "if":
        raise ValueError(f"values must be {clients} numbers, one for each client")
    if not ((worth >= 0) & (worth <= MOST / MICRO)).all():
        raise ValueError(f"values must be numbers from 0 to {MOST // MICRO:,}")
    return to_micro(worth.astype(np.float64)) / MICRO
