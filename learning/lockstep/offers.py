"""Offers of many services at once: their checks, serial selection, their clearing, and which updates arrive."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from des.allocation import NO_CORE, tie_order_of
from des.clock import NEVER, WorkTimes, departure
from des.mechanism import Book, ClearingError, Mechanism, clearing_of
from des.money import MicroArray, text
from fl.arithmetic.draws import draw_key, integers, uniforms
from fl.arrays import BoolArray, FloatArray, IntArray
from fl.surrogate.learning_curves import Trained
from flmarket.core.errors import RunError
from learning.environments.actions import by_payment
from learning.lockstep.market_kinds import ENDLESS, LockstepWorld, MarketKinds


class LockstepOfferError(RunError):
    """Offers break a constraint; names the first. Nothing of the round has happened yet."""


@dataclass(frozen=True, slots=True)
class Offers:
    """The offers of a round, one entry for each: market by market, service by service, in the order of choice."""

    market: IntArray  # [offers] b
    service: IntArray  # [offers] m
    client: IntArray  # [offers] c
    payment: MicroArray  # [offers] micro-units

    def places(self, shape: tuple[int, ...]) -> IntArray:
        """Return where each offer stands in an array [B, M, C], laid out flat; that all are there is not checked."""
        _, services, clients = shape
        return (self.market * services + self.service) * clients + self.client

    @classmethod
    def by_payment(
        cls,
        select: BoolArray,  # [B, M, C] clients wanted; of services that take part, clients that are there
        payment: FloatArray,  # [B, M, C] what each would be paid, in units of its bid, at least 1
        bids: MicroArray,  # [B, M, C] micro-units
        budget: MicroArray,  # [B, M] micro-units
    ) -> Self:
        """Return the offers that actions make, cut to the budgets by the rule of ``learning.environments.actions``."""
        return cls(*by_payment(select, payment, bids, budget))


def check(
    offers: Offers,  # of all services
    bids: MicroArray,  # [B, M, C] micro-units
    available: BoolArray,  # [B, M, C] who can be selected
    budget: MicroArray,  # [B, M] micro-units
    asked: BoolArray,  # [B, M] which services take part
) -> None:
    """Check offers as ``des.offer_checks.check_offer`` does."""
    where = offers.market, offers.service, offers.client
    for index, most in zip(where, bids.shape, strict=True):
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < most:
            raise LockstepOfferError("an offer names a market, service or client that is not there")
    row = offers.market * bids.shape[1] + offers.service
    for wrong, problem in (
        (np.diff(row, prepend=0) < 0, "offers must stand market by market, service by service"),
        (~asked[where[:2]], "the service does not take part"),
        (~available[where], "the client is offline"),
        (offers.payment < bids[where], "the payment is below the bid (eq. 5)"),
        # This comes before the sum: absurd amounts may add up to more than 64 bits can hold.
        (offers.payment > budget[where[:2]], "the payment alone is over the budget (eq. 4)"),
        (_repeated(offers.places(bids.shape)), "a client can be offered only one payment"),
    ):
        if wrong.any():
            b, m, c = (int(index[wrong.argmax()]) for index in where)
            raise LockstepOfferError(f"market {b}, service {m}, client {c}: {problem}")
    total = np.zeros(budget.shape, dtype=np.int64)
    np.add.at(total.reshape(-1), row, offers.payment)
    if (over := total > budget).any():
        b, m = np.argwhere(over)[0].tolist()
        raise LockstepOfferError(
            f"market {b}, service {m}: the payments add up to {text(int(total[b, m]))}, over the budget of "
            f"{text(int(budget[b, m]))} (eq. 4)"
        )


def _repeated(places: IntArray) -> BoolArray:
    """Return which entries occur more than once."""
    _, inverse, counts = np.unique(places, return_inverse=True, return_counts=True)
    repeated: BoolArray = counts[inverse] > 1
    return repeated


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
        mechanisms = {type(market.mechanism): market.mechanism for market in markets}
        self._mechanisms = [
            (mechanism, np.array([type(market.mechanism) is kind for market in markets]))
            for kind, mechanism in mechanisms.items()
        ]
        # Offers have been checked against the budgets, which mechanisms that clear client by client do not read.
        self._unlimited = np.full(kinds.services, ENDLESS)
        self._ties = np.zeros((count, 2), dtype=np.uint32)
        self._departure = np.zeros((count, 2), dtype=np.uint32)
        populations = [market.population for market in kinds.markets]
        rates = [(market.timeline.seconds_per_sample, market.population.speeds.tolist()) for market in kinds.markets]
        self._times = WorkTimes((seconds, speed) for seconds, speeds in rates for speed in speeds)
        begin = np.cumsum([0, *(len(speeds) for _, speeds in rates)])  # where the speeds of each kind begin
        self._rate = kinds.per_client([population.departure_rate for population in populations], absent=0.0)  # [B, C]
        self._patience = np.array([market.timeline.patience for market in markets])
        travels = [market.timeline.download + market.timeline.upload for market in markets]
        self._travel = np.array(travels)
        choices = [population.speed_choices for population in populations]
        self._first_speed = kinds.per_client(
            [first + speeds.first for first, speeds in zip(begin, choices, strict=False)], absent=0
        )  # [B, C]
        self._speed_count = kinds.per_client([speeds.count for speeds in choices], absent=1)
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
                clearing = clearing_of(mechanism, book, 0)
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
        whole = self._times.of(size * self._epochs[b, offers.service], self._speed[b, c]) + self._travel[b]
        leaves, part = uniforms(self._departure[b], number[b], 0, c)
        limit = self._patience[b]
        departing = leaves < self._rate[b, c]
        limit = np.where(departing, np.minimum(limit, departure(part, whole)), limit)
        arrives: BoolArray = whole <= limit
        return arrives
