"""Clearing of many markets' rounds, and which updates arrive, by the functions that ``des`` has for one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from des.allocation import NO_CORE, tie_order_of
from des.clock import NEVER, TrainingTimes, departure
from des.mechanism import Book, ClearingError, Mechanism, checked_clearing
from des.money import MicroArray
from fl.arithmetic.draws import draw_key, integers, uniforms
from fl.arrays import BoolArray, FloatArray, IntArray
from fl.surrogate.learning_curves import Trained
from learning.lockstep.market_kinds import ENDLESS, MarketKinds
from learning.lockstep.offers import Offers
from learning.lockstep.worlds import LockstepWorld


@dataclass(frozen=True, slots=True)
class Fate:
    """The outcomes of a round's offers."""

    offers: Offers
    awarded: BoolArray  # [offers] whether the client gave the service a core
    served: BoolArray  # [offers] whether its update arrived; it was dropped where it was awarded and not served
    price: MicroArray  # [offers] what the service pays if it arrives, micro-units
    size: IntArray  # [offers] D of the client's data, images
    emd: FloatArray  # [offers] its EMD (eq. 1)

    def sums(self, shape: tuple[int, int]) -> tuple[IntArray, MicroArray, Trained]:
        """Return of each service [B, M] how many clients served it, what it pays them, and what it trains on.

        Floats are added in the order of the offers, as a market adds them.
        """
        row = (self.offers.market * shape[1] + self.offers.service)[self.served]
        size, price = self.size[self.served], self.price[self.served]
        served = np.bincount(row, minlength=shape[0] * shape[1]).reshape(shape)
        weighted = np.bincount(row, size * self.emd[self.served], shape[0] * shape[1]).reshape(shape)
        spent, samples, squares = np.zeros((3, *shape), dtype=np.int64)
        for total, values in ((spent, price), (samples, size), (squares, size * size)):
            np.add.at(total.reshape(-1), row, values)
        return served, spent, Trained(samples, samples, weighted, squares)


class Clearings:
    def __init__(self, kinds: MarketKinds) -> None:
        markets, count = kinds.each, len(kinds.each)
        self._clients, self._services, self._epochs = kinds.clients, kinds.services, kinds.epochs
        mechanisms = {type(it.mechanism): it.mechanism for it in markets}
        self._mechanisms = [
            (mechanism, np.array([type(it.mechanism) is kind for it in markets]))
            for kind, mechanism in mechanisms.items()
        ]
        # Offers have been checked against the budgets, which mechanisms that clear client by client do not read.
        self._unlimited = np.full(kinds.services, ENDLESS)
        self._ties = np.zeros((count, 2), dtype=np.uint32)
        self._departure = np.zeros((count, 2), dtype=np.uint32)
        people = [it.population for it in kinds.markets]
        rates = [(it.timeline.seconds_per_sample, it.population.speeds.tolist()) for it in kinds.markets]
        self._times = TrainingTimes((seconds, speed) for seconds, speeds in rates for speed in speeds)
        begin = np.cumsum([0, *(len(speeds) for _, speeds in rates)])  # where the speeds of each kind begin
        self._rate = kinds.per_client([it.departure_rate for it in people], absent=0.0)  # [B, C]
        self._patience = np.array([it.timeline.patience for it in markets])
        self._upload = np.array([it.timeline.upload for it in markets])
        choices = [it.speed_choices for it in people]
        self._first_speed = kinds.per_client(
            [first + it.first for first, it in zip(begin, choices, strict=False)], absent=0
        )  # [B, C]
        self._speed_count = kinds.per_client([it.count for it in choices], absent=1)
        self._speed = np.zeros((count, kinds.clients), dtype=np.int64)  # [B, C] the place of each client's speed
        self._all_arrive = bool((self._rate == 0).all() and (self._patience == NEVER).all())

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin some markets again, with other seeds."""
        rows = list(which)
        self._ties[rows] = draw_key(seeds, "ties")
        if self._all_arrive:
            return
        self._departure[rows] = draw_key(seeds, "departure")
        for b, key in zip(rows, draw_key(seeds, "speed"), strict=True):
            drawn = integers(key, self._speed_count[b], 0, 0, np.arange(self._clients))
            self._speed[b] = self._first_speed[b] + drawn

    def fate(
        self,
        offers: Offers,
        world: LockstepWorld,
        bids: MicroArray,  # [B, M, C] micro-units
        cores: IntArray,  # [B] K
        number: IntArray,  # [B] n
    ) -> Fate:
        """Return the outcomes of the offers in the open round of all markets."""
        places = offers.places(world.at.shape)
        at = world.at.take(places)
        size, emd, asked = world.pairs.size.take(at), world.pairs.emd.take(at), bids.take(places)
        awarded, price = np.zeros(len(at), dtype=np.bool_), offers.payment.copy()
        for mechanism, k, mine in self._groups(offers, cores):
            book = Book(
                offers.service[mine],
                offers.market[mine] * self._clients
                + offers.client[mine],  # the clients of all markets, numbered through
                offers.payment[mine],
                asked[mine],
                asked[mine],
                self._unlimited,
                k,
                lambda client: self._tie_order(client, number),
            )
            try:
                clearing = checked_clearing(mechanism, book, 0)
            except ClearingError as error:
                where = "in lockstep, with the clients of all markets numbered through"
                raise ClearingError(f"{where}: {error}") from error
            awarded[mine], price[mine] = clearing.core != NO_CORE, clearing.price
        served = awarded if self._all_arrive else awarded & self._arrives(offers, size, number)
        return Fate(offers, awarded, served, price, size, emd)

    def _groups(self, offers: Offers, cores: IntArray) -> Iterator[tuple[Mechanism, int, Any]]:
        """Yield which offers one call clears: those of all markets with one mechanism and one K."""
        if len(self._mechanisms) == 1 and (cores == cores[0]).all():
            yield self._mechanisms[0][0], int(cores[0]), slice(None)
            return
        for mechanism, which in self._mechanisms:
            for k in np.unique(cores[which]).tolist():
                yield mechanism, k, (which & (cores == k))[offers.market]

    def _tie_order(self, code: Any, number: IntArray) -> FloatArray:
        b, client = np.divmod(np.asarray(code), self._clients)
        return tie_order_of(self._ties[b], number[b], self._services, client)

    def _arrives(self, offers: Offers, size: IntArray, number: IntArray) -> BoolArray:
        """Return whether the update of each client would arrive: it keeps the deadline, and does not leave."""
        b, c = offers.market, offers.client
        whole = self._times.training(size * self._epochs[b, offers.service], self._speed[b, c]) + self._upload[b]
        leaves, part = uniforms(self._departure[b], number[b], 0, c)
        limit = self._patience[b]
        departing = leaves < self._rate[b, c]
        limit = np.where(departing, np.minimum(limit, departure(part, whole)), limit)
        arrives: BoolArray = whole <= limit
        return arrives
