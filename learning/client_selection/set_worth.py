"""The worth of clients to a service together, and offers to those who add the most to it.

``additive``: the sum of their DQI. ``union``: the DQI (eq. 6) of all their images as one data set, as Jiao et al. have
it ("Toward an automated auction framework for wireless federated learning services market", arXiv 1912.06370). It takes
each client's data size and EMD, which services see where the market makes data public.
"""

import math

import numpy as np
import numpy.typing as npt

from des.money import MICRO, MicroArray, to_micro
from des.observation import Observation, Offer
from des.offer_checks import MOST
from fl.arrays import FloatArray, IntArray
from fl.data.dqi import DQIParameters, dqi
from flmarket.core.plugin_options import one_of
from learning.client_selection.selection import ranking
from learning.policy import PolicyContext

TOGETHER = ("additive", "union")


class ClientUnion:
    """A set of clients that grows, worth the DQI of all their images together, at their mean EMD.

    The mean is over images: a client that comes as two halves is worth the same. The true EMD of the images together is
    never higher, and lower where the clients' labels complement each other, which no service sees. A DQI below zero
    counts as zero, and no clients are worth nothing.
    """

    def __init__(
        self,
        data_size: IntArray,  # [C] images of each client
        emd: FloatArray,  # [C]
        parameters: DQIParameters,  # of eq. (6)
    ) -> None:
        self._sizes = data_size.astype(np.float64)
        self._distances = self._sizes * emd  # each image's distance is its client's
        self._parameters = parameters
        self._size = self._distance = 0.0

    @property
    def worth(self) -> float:
        return float(union_worth(self._size, self._distance, self._parameters))

    def added_worth(self) -> FloatArray:
        """Return what each client would add, [C]; it may be negative."""
        return union_worth(self._size + self._sizes, self._distance + self._distances, self._parameters) - self.worth

    def add(self, client: int) -> None:
        self._size += float(self._sizes[client])
        self._distance += float(self._distances[client])


def union_worth(size: npt.ArrayLike, distance: npt.ArrayLike, parameters: DQIParameters) -> FloatArray:
    """Return what sets of clients are worth whose data sizes, and data sizes times EMDs, add up to these."""
    images = np.maximum(size, 1.0)
    worth = dqi(images, np.asarray(distance) / images, parameters)
    return np.where(np.asarray(size) > 0, np.maximum(worth, 0.0), 0.0)


def union_parameters(context: PolicyContext, together: str) -> DQIParameters | None:
    """Return the parameters by which an option ``together`` values clients; None where it adds up their DQI.

    Raises:
        ValueError: it is no such option, or the market hides what it takes.
    """
    if one_of("together", together, TOGETHER) == "additive":
        return None
    if context.dqi is None:
        raise ValueError(
            'together = "union" values data sizes and EMDs, which this market hides from services; set '
            'market.data = "public"'
        )
    return context.dqi


def offer_to_union(
    seen: Observation,  # the round, with the clients' data
    parameters: DQIParameters,  # of eq. (6)
    unit: float | None = None,  # what a unit of DQI is worth, money; a client is offered what it adds, or else its bid
) -> Offer:
    """Offer clients one after the other: always the one that adds the most worth for what it asks, if it adds any.

    Those are left out that the money left cannot pay, and those that ask for more than they are offered.
    """
    assert seen.privileged is not None  # noqa: S101 - the market gives it to all where data are public
    union = ClientUnion(seen.privileged.data_size, seen.privileged.emd, parameters)
    bids, order, rest = to_micro(seen.own_bids), ranking(seen), seen.available
    left: float = math.inf if unit is not None and seen.over_budget else to_micro(seen.budget)
    clients: list[int] = []
    payments: list[int] = []
    while True:
        added = union.added_worth()
        offered = bids if unit is None else _money(unit * added)
        fits = rest & (added > 0) & (offered >= bids) & (offered <= left)
        if not fits.any():
            return Offer(np.array(clients, dtype=np.int64), np.array(payments, dtype=np.int64) / MICRO)
        ratio = np.where(fits, added / np.maximum(bids, 1), -np.inf)
        client = int(order[ratio[order].argmax()])  # of equal ones the first in a random order
        union.add(client)
        clients.append(client)
        payments.append(int(offered[client]))
        left -= payments[-1]
        rest[client] = False


def _money(worth: FloatArray) -> MicroArray:
    return to_micro(np.clip(worth, 0, MOST / MICRO))
