"""A small rule for offers, for one service of many markets at once: what a best response is searched among.

A service scores all clients, names a price for each, and offers the best scores their prices as far as its budget
goes. Nine numbers say how; an unprivileged policy could follow it. Of equal scores the client with the lower index
comes first. ``standardised`` means: less the mean over the market's clients, in standard deviations.
"""

from dataclasses import dataclass, fields

import numpy as np

from des.money import MicroArray
from fl.arithmetic.ordered_sums import NO_SPREAD
from fl.arrays import BoolArray, FloatArray, IntArray
from learning.policies.outbid import to_beat


@dataclass(frozen=True, slots=True)
class Weights:
    """The numbers of the rule: of one, or arrays [n] of one for each market.

    Attributes:
        quality: score for the standardised DQI.
        price: score for the standardised price; the own bid where nothing is paid above it.
        both: score for the product of these two.
        late: score for the standardised price, times the share of the rounds that are over.
        rivals: score for the standardised payment that beats the rivals if they pay the bids.
        markup: what is paid above the bid, in bids; at least 0.
        reach: how much above a client's bid, in bids, is paid at most to beat the rivals' bids; not at all if 0.
        clients: the share of the clients that are wanted at most.
        budget: the share of the budget that is spent at most.
    """

    quality: float | FloatArray = 0.0
    price: float | FloatArray = 0.0
    both: float | FloatArray = 0.0
    late: float | FloatArray = 0.0
    rivals: float | FloatArray = 0.0
    markup: float | FloatArray = 0.0
    reach: float | FloatArray = 0.0
    clients: float | FloatArray = 1.0
    budget: float | FloatArray = 1.0

    @classmethod
    def of(cls, points: FloatArray) -> "Weights":
        """Return points [..., WIDTH] of the space that is searched, as weights [...]."""
        return cls(*np.moveaxis(points, -1, 0))


NAMES = tuple(field.name for field in fields(Weights))
WIDTH = len(NAMES)

STARTS: dict[str, Weights] = {
    "lcfa": Weights(price=-1.0),
    "hqfa": Weights(quality=1.0),
    "greedy": Weights(quality=1.0, price=-1.0),
    "dearest": Weights(price=1.0),
    "outbid": Weights(quality=1.0, reach=1.0),
    "outbid dearest": Weights(price=1.0, reach=0.5),
    "uncontested": Weights(quality=0.5, rivals=1.0),
    "marked up": Weights(quality=1.0, markup=0.1),
}
"""The first candidates of the search: simple rules."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An open round as n services see it, one in each of n markets, with the information of the paper's services.

    Attributes:
        dqi: [n, C].
        bids: [n, M, C] what each client asks of each service, micro-units; 0 of services that take no part, and of all
            rivals where bids are not public.
        seats: [n] the service's index.
        available: [n, C] whom it can select.
        clients: [n, C] which clients the market has.
        budget: [n] micro-units.
        cores: [n] K.
        time: [n] the share of the rounds that are over, in [0, 1).
    """

    dqi: FloatArray
    bids: MicroArray
    seats: IntArray
    available: BoolArray
    clients: BoolArray
    budget: MicroArray
    cores: IntArray
    time: FloatArray


def offers(weights: Weights, seen: Seen) -> tuple[IntArray, IntArray, MicroArray]:
    """Return the offers of n services: row, client and payment in micro-units, row by row, in the order of choice."""
    rows = np.arange(len(seen.seats))
    bids = seen.bids[rows, seen.seats]
    beats = to_beat(seen.bids, seen.seats, seen.cores)
    price = _prices(weights, bids, beats)
    quality, dear = standardised_rows(seen.dqi, seen.clients), standardised_rows(price, seen.clients)
    score = (
        _column(weights.quality) * quality
        + (_column(weights.price) + _column(weights.late) * seen.time[:, None]) * dear
        + _column(weights.both) * quality * dear
        + _column(weights.rivals) * standardised_rows(beats, seen.clients)
    )
    order = np.argsort(-score, axis=1, kind="stable")
    count = seen.clients.sum(axis=1)
    most = np.ceil(np.clip(weights.clients, 0.0, 1.0) * count)
    left = np.floor(np.clip(weights.budget, 0.0, 1.0) * seen.budget).astype(np.int64)
    taken = np.zeros(order.shape, dtype=np.bool_)
    wanted = np.zeros(len(rows), dtype=np.int64)
    for place in range(order.shape[1]):
        client = order[:, place]
        cost = price[rows, client]
        takes = seen.available[rows, client] & (cost <= left) & (wanted < most)
        taken[:, place] = takes
        left = left - np.where(takes, cost, 0)
        wanted += takes.astype(np.int64)
    row, places = taken.nonzero()
    chosen = order[row, places]
    return row, chosen, price[row, chosen]


def _prices(weights: Weights, bids: MicroArray, beats: MicroArray) -> MicroArray:
    """Return what each client would be paid, [n, C]; at least its bid."""
    marked = bids + np.floor(np.maximum(_column(weights.markup), 0.0) * bids).astype(np.int64)
    reach = _column(weights.reach)
    beaten = (reach > 0) & (beats <= bids + np.floor(np.maximum(reach, 0.0) * bids))
    return np.where(beaten, np.maximum(marked, beats), marked)


def _column(weight: float | FloatArray) -> FloatArray:
    return np.asarray(weight, dtype=np.float64).reshape(-1, 1)


def standardised_rows(
    values: FloatArray | IntArray,  # of any size, such as money in micro-units
    there: BoolArray,  # [n, C] which clients a market has, at least one; the others' values are 0
) -> FloatArray:
    """Return values [n, C] of n markets less their mean over the clients that are there, in standard deviations.

    Zeros where all are equal, as in ``standardised``. Sums have a fixed order: what they decide must not depend on the
    machine.
    """
    count = there.sum(axis=1)[:, None]
    known = np.where(there, values, 0.0)
    centred = np.where(there, known - np.cumsum(known, axis=1)[:, -1:] / count, 0.0)
    spread = np.sqrt(np.cumsum(centred * centred, axis=1)[:, -1:] / count)
    even = spread <= NO_SPREAD * np.maximum(1.0, np.abs(known).max(axis=1, keepdims=True))
    return np.where(even, 0.0, centred / np.where(even, 1.0, spread))
