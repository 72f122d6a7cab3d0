"""How the rounds of many markets are cleared, and which updates arrive, by the functions that ``des`` has for one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from des.allocation import NO_CORE
from des.award import tie_order_of
from des.market import Market
from des.mechanism import Book, Clearing, ClearingError, Mechanism, ask, clear
from des.mechanisms import comes_with_flmarket
from des.money import MicroArray
from des.population import Population
from fl.arrays import BoolArray, FloatArray, IntArray
from fl.draws import draw_key, integers, uniforms
from fl.native import extension
from fl.surrogate import Trained
from learning.lockstep.offers import Offers
from learning.lockstep.templates import ENDLESS, Templates
from learning.lockstep.worlds import Tables, World

_native = extension("totals")


@dataclass(frozen=True, slots=True)
class Sums:
    """What adds up in a round."""

    served: IntArray  # [B, M] how many clients served each service
    spent: MicroArray  # [B, M] what it pays them, micro-units
    trained: Trained  # [B, M] what it trains on
    income: MicroArray  # [B, C] what each client receives, micro-units


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of offers."""

    offers: Offers  # all of the round
    awarded: BoolArray  # [offers] whether the client gave the service a core
    served: BoolArray  # [offers] whether its update arrived; it was ``dropped`` where it was awarded and not served
    price: MicroArray  # [offers] what the service pays if it arrives, micro-units
    at: IntArray  # [offers] where in the tables the client's data stands
    tables: Tables  # what the clients hold, on which they train, and what they report of it

    def sums(self, services: tuple[int, int], clients: tuple[int, int]) -> Sums:
        """Return what adds up for services and clients, of whom there are [B, M] and [B, C].

        Floats are added in the order of the offers, as a market adds them.
        """
        tables, weighted, income = self.tables, np.zeros(services), np.zeros(clients, dtype=np.int64)
        counts = np.zeros((5, *services), dtype=np.int64)
        columns = self.offers.market, self.offers.service, self.offers.client, self.price, self.at
        if _native is not None:
            _native.totals(
                len(income), np.ascontiguousarray(self.served), *(np.ascontiguousarray(it, np.int64) for it in columns),
                tables.held_size, tables.data_size, tables.held_emd, counts, weighted, income,
            )  # fmt: skip
        else:
            market, service, client, price, at = (column[self.served] for column in columns)
            row, weight = market * services[1] + service, tables.data_size[at]
            values_of: tuple[Any, ...] = (1, price, tables.held_size[at], weight, weight * weight)
            for total, values in zip(counts, values_of, strict=True):
                np.add.at(total.reshape(-1), row, values)
            np.add.at(weighted.reshape(-1), row, weight * tables.held_emd[at])
            np.add.at(income, (market, client), price)
        served, spent, samples, weights, squares = counts
        return Sums(served, spent, Trained(samples, weights, weighted, squares), income)


class Clearings:
    """Clears the rounds of all markets."""

    def __init__(self, kinds: Templates) -> None:
        count = len(kinds.of)
        self._kinds = kinds
        mechanisms = [market.mechanism for market in kinds.each]
        # [B] whether the market's mechanism keeps budgets, so that offers may exceed them
        self.keeps_budgets: BoolArray = np.array([it.keeps_budgets for it in mechanisms])
        types = {type(it): it for it in mechanisms if it.by_client}
        self._joint: list[tuple[Mechanism, BoolArray]] = [
            (it, np.array([type(other) is kind for other in mechanisms])) for kind, it in types.items()
        ]
        self._alike = kinds.only_k is not None and len(types) == 1 and all(it.by_client for it in mechanisms)
        self._unlimited = np.full(kinds.services, ENDLESS)  # of many markets at once; nothing reads budgets there
        self._own: dict[int, Mechanism] = {}
        self._learning: dict[int, Population] = {}
        self._willing: dict[int, BoolArray] = {}
        self._ties = np.zeros((count, 2), dtype=np.uint32)
        self._departure = np.zeros((count, 2), dtype=np.uint32)
        markets = kinds.each
        self._rate = np.array([it.population.spec.departure_rate for it in markets])
        self._patience = np.array([it.timeline.patience for it in markets])
        self._per_sample = np.array([it.timeline.seconds_per_sample for it in markets])
        self._upload = np.array([it.timeline.upload_seconds for it in markets])
        self._speeds = [np.array(it.population.spec.speeds, dtype=np.float64) for it in markets]
        self._speed = np.ones((count, kinds.clients))
        self._all_arrive = bool((self._rate == 0).all() and np.isinf(self._patience).all())

    def reset(self, which: Sequence[int], seeds: Sequence[int], own: Mapping[int, Market]) -> None:
        """Begin some markets anew; ``own`` are those, with their seeds, whose mechanism or clients are their own."""
        rows = list(which)
        self._ties[rows] = draw_key(seeds, "ties")
        if not self._all_arrive:
            self._departure[rows] = draw_key(seeds, "departure")
            for b, key in zip(rows, draw_key(seeds, "speed"), strict=True):
                speeds = self._speeds[b]
                self._speed[b] = speeds[integers(key, len(speeds), 0, 0, np.arange(self._kinds.clients))]
        for b, market in own.items():
            if not market.mechanism.by_client:
                self._own[b] = market.mechanism
            if market.population.learns:
                self._learning[b] = market.population

    def ask(self, world: World, number: IntArray, playing: BoolArray) -> tuple[MicroArray, BoolArray | None]:
        """Return what services have to pay at least [B, M, C], micro-units, and who serves them; None if all do."""
        least, willing = world.bid, None
        self._willing = {}
        for b, mechanism in self._own.items():
            if not playing[b]:
                continue
            m, c = self._extent(b)
            asks = ask(mechanism, least[b, :m, :c], world.tables.data_size[world.at[b, :m, :c]], int(number[b]))
            least[b, :m, :c] = asks.least
            if asks.willing is not None:
                willing = np.ones(least.shape, dtype=np.bool_) if willing is None else willing
                willing[b, :m, :c] = self._willing[b] = asks.willing
        return least, willing

    def unwilling(self, b: int, m: int) -> BoolArray | None:
        """Return who does not serve service ``m`` in the open round [C]; None if all do."""
        return ~self._willing[b][m] if b in self._willing else None

    def clear(
        self,
        offers: Offers,
        world: World,
        asks: MicroArray,
        budget: MicroArray,
        cores: IntArray,
        number: IntArray,
        asked: BoolArray,
    ) -> Fate:
        """Clear the open round of all markets; arguments as in ``learning.lockstep.rounds.View``."""
        places, tables = offers.places(world.at.shape), world.tables
        at = world.at.take(places)
        awarded, price = np.zeros(len(at), dtype=np.bool_), offers.payment.copy()
        bids = tables.bid.take(at)
        least = asks.take(places) if self._own else bids  # of the others asks are bids
        only = self._kinds.only_k
        for mechanism, which in self._joint:
            for k in [only] if only is not None else sorted({*cores[which].tolist()}):
                some = None if self._alike else which & (cores == k)
                mine: Any = slice(None) if some is None or some.all() else some[offers.market].nonzero()[0]
                codes = offers.market[mine] * self._kinds.clients
                codes += offers.client[mine]
                book = Book(
                    offers.service[mine], codes, offers.payment[mine], bids[mine], least[mine], self._unlimited, k,
                    lambda code: self._tie_order(code, number),
                )  # fmt: skip
                if comes_with_flmarket(mechanism):  # and keeps the rules
                    cleared = mechanism.clear(book)
                else:
                    books = (
                        (int(number[b]), self._book(b, len(budget[b]), offers, own, bids, least, budget, cores, number))
                        for b in np.unique(offers.market[mine]).tolist()
                        for own in [(offers.market == b).nonzero()[0]]
                    )
                    cleared = _checked(mechanism, book, books)
                awarded[mine], price[mine] = cleared.core != NO_CORE, cleared.price
        for b in self._own:
            if asked[b].any():
                mine = (offers.market == b).nonzero()[0]
                m, _ = self._extent(b)
                book = self._book(b, m, offers, mine, bids, least, budget, cores, number)
                cleared = clear(self._own[b], book, int(number[b]))
                self._own[b].close(book, cleared)
                awarded[mine], price[mine] = cleared.core != NO_CORE, cleared.price
        served = awarded if self._all_arrive else awarded & self._arrives(offers, tables.held_size[at], number)
        return Fate(offers, awarded, served, price, at, tables)

    def _book(
        self, b: int, m: int, offers: Offers, mine: IntArray, bids: MicroArray, least: MicroArray, budget: MicroArray,
        cores: IntArray, number: IntArray,
    ) -> Book:  # fmt: skip
        return Book(
            offers.service[mine], offers.client[mine], offers.payment[mine], bids[mine], least[mine], budget[b, :m],
            int(cores[b]), lambda client: tie_order_of(self._ties[b], int(number[b]), m, client),
        )  # fmt: skip

    def learn(self, fate: Fate, number: IntArray, playing: BoolArray) -> None:
        """Let clients learn from the round that is closed, where they do."""
        for b, population in self._learning.items():
            if playing[b]:
                names = [spec.name for spec in self._kinds.each[b].services]
                offers = fate.offers
                mine = (offers.market == b).nonzero()[0]
                rows: list[tuple[str, int, Any]] = [
                    (names[m], c, price if served else None)
                    for m, c, price, served in zip(
                        offers.service[mine].tolist(), offers.client[mine].tolist(), fate.price[mine].tolist(),
                        fate.served[mine].tolist(), strict=True,
                    )
                ]  # fmt: skip
                population.close(int(number[b]), rows, names)

    def _tie_order(self, code: Any, number: IntArray) -> FloatArray:
        b, client = np.divmod(np.asarray(code), self._kinds.clients)
        return tie_order_of(self._ties[b], number[b], self._kinds.services, client)

    def _extent(self, b: int) -> tuple[int, int]:
        market = self._kinds.each[b]
        return len(market.services), market.population.spec.count

    def _arrives(self, offers: Offers, size: IntArray, number: IntArray) -> BoolArray:
        """Return whether the update of each client would arrive: it keeps the deadline, and does not leave."""
        b, c = offers.market, offers.client
        epochs = self._kinds.epochs[b, offers.service]
        compute = size * epochs * self._per_sample[b] / self._speed[b, c]
        leaves, part = uniforms(self._departure[b], number[b], 0, c)
        limit = self._patience[b]
        departing = leaves < self._rate[b]
        limit = np.where(departing, np.minimum(limit, part * (compute + self._upload[b])), limit)
        arrives: BoolArray = compute + self._upload[b] <= limit
        return arrives


def _checked(mechanism: Mechanism, book: Book, books: Iterable[tuple[int, Book]]) -> Clearing:
    """Return the clearing of many markets at once by a mechanism of a plug-in."""
    try:
        return clear(mechanism, book, 0)
    except ClearingError:
        for number, own in books:
            clear(mechanism, own, number)
        raise
