"""Payment mechanisms: which offers win a core, and what each winner pays; the one seam for them.

In a round a mechanism may first name the prices that services have to pay at least (``ask``); it clears the offers
(``clear``), maybe several times, because services that were refused may offer again (``steps``); it may set prices anew
once a service has its updates (``settle``); and it may learn from what came of it all (``close``), for the next round.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from des.allocation import NO_CORE, allocate
from des.money import MICRO, Micro, MicroArray, part_of, text, to_micro
from fl.arrays import AnyArray, BoolArray, FloatArray, IntArray, read_only
from flmarket.core.errors import InputError, RunError
from flmarket.core.plugin_errors import method
from flmarket.core.plugins import Registry, built_in, subclass_problem
from flmarket.core.text import counted


@dataclass(frozen=True, slots=True)
class Asks:
    """The least that services have to pay. Arrays are over services and clients; money is in micro-units.

    Attributes:
        least: [M, C] the lowest payment that an offer may name, at least the bid.
        willing: [M, C] whether the client serves the service at all; None if all do.
    """

    least: MicroArray
    willing: BoolArray | None = None


@dataclass(frozen=True, slots=True)
class RoundView:
    """A round as the platform sees it, besides its offers. Arrays are read-only.

    Attributes:
        number: n, from 1.
        rounds: N.
        data_size: [M, C] D as clients report it, images.
        emd: [M, C] EMD as clients report it.
        dqi: [M, C] what services see as DQI (eq. 6).
        accuracy: [M] each service's accuracy after the last round, six decimals as in the logs; 0 in the first one.
        target: [M] the accuracy at which it leaves.
        total_left: [M] what is left of its budget for the whole run as the round begins, micro-units; infinity if it
            has none.
        record: [2, M, C] how often each service's offer to each client was taken in earlier rounds, and how often the
            update then arrived; None unless the mechanism says ``counts_deliveries``.
        arrival: [M] when it came to the market, in rounds: 2.5 is the middle of the second.
        demand: [M] how many clients each service wants: its offers in this round, or those that still stand.
        serves: [M, C] whether a client can serve a service at all, by its group (``clients.groups``).
    """

    number: int
    rounds: int
    data_size: IntArray
    emd: FloatArray
    dqi: FloatArray
    accuracy: FloatArray
    target: FloatArray
    total_left: FloatArray
    record: IntArray | None = None
    arrival: FloatArray = field(default_factory=lambda: np.empty(0))
    demand: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    serves: BoolArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Deliveries:
    """What came of the offers of one service that were taken. Arrays are read-only.

    Attributes:
        service: its index.
        offers: [taken] their places in the book, ascending.
        delivered: [taken] whether the update arrived; if not, the client left, was too late, or declined.
        promised: [taken] the part of the work that the client promised; 1 unless clients respond (``des.response``).
        done: [taken] the part that it has done, as the update shows.
        before, after: the service's accuracy after the last round, 0 in the first one, and after this one, both
            with six decimals as in the logs.
    """

    service: int
    offers: IntArray
    delivered: BoolArray
    promised: FloatArray
    done: FloatArray
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Book:
    """All offers of a round, one entry for each. They keep constraints (4) and (5). Money is in micro-units.

    The arrays are read-only: the clearing is checked against them.

    Attributes:
        services: [offers] index of the service that offers.
        clients: [offers] index of the client that it wants.
        payments: [offers] what it offers to pay.
        bids: [offers] what the client asks of this service.
        asks: [offers] what the service has to pay at least: the bid, unless the mechanism asks for more.
        budgets: [M] what each service may pay in this round; 0 for those that take no part.
        cores: K, how many services a client can serve at once (eq. 2), at most.
        tie_order: returns, for a client or an array of clients [...], a random number for each service [..., M]. Of
            equal payments, that of the service with the lower number goes first. The numbers are drawn when it is
            called.
        view: returns ``round``; made when it is called.
        deliveries: what came of the offers, service by service, where ``close`` is asked, and where ``settle`` is if
            prices are set together; empty before.
        cores_of: [C] how many services each client can serve at once; None if all can serve K. See ``capacity``.
    """

    services: IntArray
    clients: IntArray
    payments: MicroArray
    bids: MicroArray
    asks: MicroArray
    budgets: MicroArray
    cores: int
    tie_order: Callable[[int | IntArray], FloatArray]
    view: Callable[[], RoundView] | None = None
    deliveries: tuple[Deliveries, ...] = ()
    cores_of: IntArray | None = None

    @property
    def capacity(self) -> int | IntArray:
        """K, or [C] what each client has where some have less: the cores that ``allocate`` gives away."""
        return self.cores if self.cores_of is None else self.cores_of

    @property
    def round(self) -> RoundView:
        """The round that the offers were made in. LookupError where a book was put together outside of a market."""
        if self.view is None:
            raise LookupError("this book is of no market's round, so book.round says nothing")
        return self.view()

    def some(self, offers: IntArray, cores_of: IntArray | None) -> "Book":
        """Return a book of some of the offers, given as their places, with so many cores of each client."""
        services, clients, payments = self.services[offers], self.clients[offers], self.payments[offers]
        bids, asks = self.bids[offers], self.asks[offers]
        for array in (services, clients, payments, bids, asks):
            array.setflags(write=False)  # cheaper than views
        rest = self.budgets, self.cores, self.tie_order, self.view, self.deliveries, cores_of
        return Book(services, clients, payments, bids, asks, *rest)

    def __post_init__(self) -> None:
        """Keep read-only views; the caller's own arrays stay as they are."""
        for name in ("services", "clients", "payments", "bids", "asks", "budgets"):
            array = getattr(self, name)
            if array.flags.writeable:
                object.__setattr__(self, name, read_only(array))


@dataclass(frozen=True, slots=True)
class Clearing:
    """The decision of a mechanism.

    Attributes:
        core: [offers] the client's core that serves the offer, 0 to K - 1, or NO_CORE for a refused offer.
        price: [offers] what the service pays if the client delivers, micro-units; without meaning for refused offers.
    """

    core: IntArray
    price: MicroArray


@dataclass(frozen=True, slots=True)
class Menu:
    """A menu of contracts: clients that respond take the entry that they like best, or none.

    Attributes:
        quantity: [entries] the parts of the work, above 0 and up to 1, each another one.
        payment: [entries], or [taken, entries] where it differs between offers, what each is paid, micro-units.
    """

    quantity: FloatArray
    payment: MicroArray


class Mechanism(ABC):
    """Clears rounds. Subclasses may take keyword arguments: the scenario's ``market.options``."""

    summary: ClassVar[str] = ""
    """One line for ``flmarket plugins``; by default the first line of the docstring."""

    keeps_budgets: ClassVar[bool] = False
    """Whether a service's prices never add up to more than its budget, whatever it offers.

    If so, its offers may add up to more than its budget: they say what clients are worth to it.
    """

    platform_budget: ClassVar[bool] = False
    """Whether the budgets of a round are one, the platform's: a service may be charged more than its own, as long as
    all together stay within the sum. It ``keeps_budgets`` then, too, and services have none for the whole run.
    """

    largest: ClassVar[int | None] = None
    """The most pairs of a service and a client that a market may have for the mechanism to clear it; None for any."""

    below_bid: ClassVar[bool] = False
    """Whether ``settle`` may pay a client that has delivered less than its bid: ex-post pay, without eq. (5)."""

    counts_deliveries: ClassVar[bool] = False
    """Whether the market counts what clients deliver, from the first round that it clears: ``book.round.record``."""

    record: IntArray | None = None
    """The counts so far, which the market keeps; None before the first round is over."""

    settles_together: ClassVar[bool] = False
    """Whether ``settle`` is called for all services when the last one has its updates: ``book.deliveries`` has all."""

    by_client: ClassVar[bool] = False
    """Whether each client's clearing follows from the offers to it alone.

    Such a mechanism has no options, asks for the bids, remembers nothing, settles nothing and reads neither budgets nor
    the round; many markets can then be cleared in one call, with their clients numbered through. Each class says so for
    itself: it is not inherited.
    """

    clears_standing: ClassVar[bool] = False
    """Whether it clears a part of a round's offers by themselves, as cores come free where work outlasts rounds.

    A mechanism that is ``by_client`` always can. Another one goes by ``book.round``, in which ``demand`` then counts
    the offers that still stand, those to other clients, too, and ``total_left`` is infinity for all. As with the
    others, it neither remembers nor settles anything.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "by_client" not in vars(cls):  # a subclass may only begin as its parent does
            cls.by_client = False
        cls.keeps_budgets = cls.keeps_budgets or cls.platform_budget

    @property
    def steps(self) -> int:
        """The number of offers a service may make in a round if it is refused."""
        return 1

    def ask(self, bids: MicroArray, data_size: IntArray) -> Asks:
        """Return what services have to pay at least in this round; by default the bids.

        Args:
            bids: [M, C] what clients ask, micro-units.
            data_size: [M, C] D, images.
        """
        return Asks(bids)

    def menu(self, book: Book, clearing: Clearing) -> Menu | None:
        """Return the menu from which clients choose whose offers were taken; by default none.

        Without one, a client that promises a part of the work is paid that part of its price. Called once in a round of
        a market in which clients respond. No payment is above the price of the offer.
        """
        return None

    def settle(self, book: Book, clearing: Clearing, deliveries: Deliveries) -> MicroArray:
        """Return what a service pays now that it has its updates and has evaluated its model; by default the prices.

        Called once for each service of which offers were taken, with what is known when its last client is done, or,
        if it ``settles_together``, when all are. Prices must follow from the arguments and from what ``state`` returned
        before the round: which service is done first must not matter.

        Returns:
            [taken] what it pays for each of its offers that were taken, micro-units: at least the bid for what was
            promised, unless ``below_bid``, at most the payment offered, and in all at most the budget, or what
            ``clear`` said if there is one ``platform_budget``. Who did not deliver is not paid.
        """
        return clearing.price[deliveries.offers]

    @property
    def settles(self) -> bool:
        """Whether prices are set when updates are there, not before."""
        return type(self).settle is not Mechanism.settle

    @property
    def learns(self) -> bool:
        """Whether a round that is over changes what the mechanism knows."""
        return self.counts_deliveries or type(self).close is not Mechanism.close

    def close(self, book: Book, clearing: Clearing) -> None:  # noqa: B027 - most mechanisms learn nothing
        """Take note of what came of a round, for the next one: ``book.deliveries`` has it. Called once in each."""

    def state(self) -> Mapping[str, Any]:
        """Return what ``close`` has noted as plain data, from which a run resumes; by default nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - most mechanisms note nothing
        """Take back what ``state`` returned."""

    @abstractmethod
    def clear(self, book: Book) -> Clearing:
        """Decide who is served at what price, from the book alone: equal books must be cleared equally.

        The clearing must keep the rules that ``clearing_of`` checks.
        """


class ClearingError(RunError):
    """A mechanism broke a rule that all mechanisms must keep."""


def asks_of(
    mechanism: Mechanism,
    bids: MicroArray,  # [M, C]
    data_size: IntArray,
    round_: int,
    serves: BoolArray | None = None,  # [M, C] whether a client can serve a service at all; None if all can serve all
) -> Asks:
    """Return what services have to pay at least in a round: to no willing client less than its bid.

    Raises:
        ClearingError: the mechanism asks for less than a bid, or returned something else than Asks.
    """
    asks = mechanism.ask(bids, data_size)
    if isinstance(asks, Asks) and asks.least is bids and asks.willing is None:
        return asks if serves is None else Asks(bids, serves)
    refuse = partial(_refusal, mechanism, "ask", round_)
    if not isinstance(asks, Asks):
        raise refuse(f": must return Asks, not {type(asks).__name__}")
    least = _whole_numbers(asks.least, bids.shape, "least", refuse)
    willing = read_only(np.ones(bids.shape, np.bool_) if asks.willing is None else np.array(asks.willing))
    if willing.shape != bids.shape or willing.dtype != np.bool_:
        raise refuse(": willing must be booleans, one for each service and client")
    if (least < bids)[willing].any():
        raise refuse(": asks for less than a bid (eq. 5)")
    return Asks(least, willing if serves is None else read_only(willing & serves))


def by_service(book: Book) -> Iterator[tuple[int, IntArray]]:
    """Yield the index of each service that offers, ascending, with its offers in the order of keyed draws.

    A stable sort then leaves equal clients in that order, so that their numbers decide nothing.
    """
    draws = book.tie_order(book.clients)[np.arange(len(book.clients)), book.services]
    order = np.lexsort((draws, book.services))
    services, first = np.unique(book.services[order], return_index=True)
    parts = np.split(order, first[1:])  # one empty part where there is no offer
    yield from zip(services.tolist(), parts, strict=False)


FIRST = 64  # places that are looked at first: of an order, the beginning is enough as a rule


def beginnings(keys: FloatArray | IntArray) -> Iterator[IntArray]:
    """Yield ever longer beginnings of ``keys.argsort(kind="stable")``, at last all of it; no key may be NaN.

    Of 10,000 keys, the first 64 take a twentieth of the time of all.
    """
    count = FIRST
    while count < len(keys):
        near = (keys <= np.partition(keys, count)[count]).nonzero()[0]
        yield near[keys[near].argsort(kind="stable")]
        count *= 8
    yield keys.argsort(kind="stable")


def choose(book: Book, picked: IntArray, price: MicroArray) -> Clearing:
    """Let each client serve those who leave it the most above its bid, of the services that have picked it.

    What the others promised lapses.

    Args:
        book: the offers.
        picked: the offers that promise something, ascending.
        price: [offers] what each promises, micro-units.
    """
    core = np.full(len(book.clients), NO_CORE, dtype=np.int64)
    gain = (price - book.asks)[picked]
    core[picked] = allocate(book.services[picked], book.clients[picked], gain, book.capacity, book.tie_order)
    return Clearing(core, price)


def clearing_of(mechanism: Mechanism, book: Book, round_: int) -> Clearing:
    """Return how a mechanism clears a round, as read-only arrays of int64, after a check of the market's rules.

    Each core of a client serves at most one offer (eq. 2), no client gets less than its bid (eq. 5), and no service
    pays more than it offered, nor more than its budget (eq. 4), unless all have one: see ``platform_budget``.

    Raises:
        ClearingError: the mechanism broke one of these rules, or returned something else than a Clearing of whole
            numbers.
    """
    clearing = mechanism.clear(book)
    refuse = partial(_refusal, mechanism, "clear", round_)
    if not isinstance(clearing, Clearing):
        raise refuse(f": must return a Clearing, not {type(clearing).__name__}")
    count = (len(book.clients),)
    core = _whole_numbers(clearing.core, count, "core", refuse)
    price = _whole_numbers(clearing.price, count, "price", refuse)
    served = core != NO_CORE
    places = core[served].tolist()
    if places and (min(places) < 0 or max(places) >= book.cores):
        raise refuse(f": cores are 0 to {book.cores - 1}, not {min(places)} to {max(places)} (eq. 2)")
    if book.cores_of is not None and (over := served & (core >= book.cores_of[book.clients])).any():
        client = int(book.clients[over.argmax()])
        own = counted(int(book.cores_of[client]), "core")
        raise refuse(f", client {client}: it has {own}, but is given core {int(core[over.argmax()])} (eq. 2)")
    if len(set(zip(book.clients[served].tolist(), places, strict=True))) < len(places):
        raise refuse(": one core of a client serves two offers (eq. 2)")
    low, high = served & (price < book.bids), price > book.payments
    if np.count_nonzero(served & (low | high)):
        at = int((low if low.any() else served & high).argmax())
        bid, payment = text(int(book.bids[at])), text(int(book.payments[at]))
        problem = f"below the bid {bid} (eq. 5)" if low[at] else f"above the offer of {payment} (eq. 4)"
        raise refuse(f", client {int(book.clients[at])}: the price {text(int(price[at]))} is {problem}")
    # Sums are exact below 2^53, and no budget is larger than that.
    spent = np.bincount(book.services[served], price[served], len(book.budgets)).tolist()
    for m, (amount, budget) in enumerate(zip(spent, book.budgets.tolist(), strict=True)):
        if amount > budget and not mechanism.platform_budget:
            raise refuse(f": service {m} would pay {text(int(amount))}, over its budget of {text(budget)} (eq. 4)")
    if mechanism.platform_budget and sum(spent) > (whole := sum(book.budgets.tolist())):
        raise refuse(f": services would pay {text(int(sum(spent)))}, over the platform's budget of {text(whole)}")
    return Clearing(core, price)


class Fates(NamedTuple):
    """What became of the offers of a round, [offers]; without meaning for those that were refused."""

    delivered: BoolArray  # whether the update arrived
    promised: IntArray | None = None  # the part of the work that was promised, in millionths; None: all of it
    done: IntArray | None = None


def deliveries_of(
    book: Book,
    clearing: Clearing,
    m: int,  # the service
    fates: Fates,
    before: float,
    after: float,
) -> Deliveries:
    """Return what came of a service's offers that were taken."""
    places = np.flatnonzero((clearing.core != NO_CORE) & (book.services == m))
    promised, done = (
        read_only(np.ones(len(places)) if it is None else it[places] / MICRO) for it in (fates.promised, fates.done)
    )
    return Deliveries(m, read_only(places), read_only(fates.delivered[places]), promised, done, before, after)


def settlement_of(
    mechanism: Mechanism, book: Book, clearing: Clearing, deliveries: Deliveries, round_: int
) -> list[Micro]:
    """Return what a service pays for each of its offers that were taken; 0 where nothing was delivered.

    Raises:
        ClearingError: a price is below the bid, above the offer, or all together are over the budget.
    """
    refuse = partial(_refusal, mechanism, "settle", round_)
    returned = mechanism.settle(book, clearing, deliveries)
    whole = _whole_numbers(returned, deliveries.offers.shape, "prices", refuse, "offer taken")
    prices = np.where(deliveries.delivered, whole, 0)
    bids = part_of(book.bids[deliveries.offers], to_micro(deliveries.promised))
    least = np.zeros_like(prices) if mechanism.below_bid else bids
    most = book.payments[deliveries.offers]
    for at in np.flatnonzero(deliveries.delivered & ((prices < least) | (prices > most))).tolist():
        place, price = int(deliveries.offers[at]), int(prices[at])
        problem = f"below {text(int(least[at]))}" if price < least[at] else f"above the offer of {text(int(most[at]))}"
        raise refuse(f", client {int(book.clients[place])}: the price {text(price)} is {problem}")
    # Of one budget for all, a service has as much as it was cleared for: it does not matter which is settled first.
    whole = clearing.price[deliveries.offers].sum() if mechanism.platform_budget else book.budgets[deliveries.service]
    if prices.sum() > (budget := int(whole)):
        over = f"would pay {text(int(prices.sum()))}, over its budget of {text(budget)} (eq. 4)"
        raise refuse(f": service {deliveries.service} {over}")
    amounts: list[Micro] = prices.tolist()
    return amounts


def settlements_of(
    mechanism: Mechanism,
    book: Book,
    clearing: Clearing,
    prices: MicroArray,  # [offers] what is paid for what was promised
    fates: Fates,
    before: FloatArray,  # [M]
    after: FloatArray,  # [M]
    round_: int,
) -> tuple[MicroArray, tuple[Deliveries, ...]]:
    """Return what is paid for each offer of a round that is over [offers], and what came of those of each service.

    Errors as in ``settlement_of``.
    """
    taken, prices, deliveries = clearing.core != NO_CORE, prices.copy(), []
    for m in np.unique(book.services[taken]).tolist():
        deliveries.append(deliveries_of(book, clearing, m, fates, float(before[m]), float(after[m])))
    came = tuple(deliveries)
    seen = replace(book, deliveries=came) if mechanism.settles_together else book
    for each in came if mechanism.settles else ():
        prices[each.offers] = settlement_of(mechanism, seen, clearing, each, round_)
    return prices, came


def record_of(mechanism: Mechanism, like: AnyArray) -> IntArray | None:
    """Return the ``record`` that a mechanism sees now, given any [M, C] array."""
    if not mechanism.counts_deliveries:
        return None
    return read_only(np.zeros((2, *like.shape), dtype=np.int64)) if mechanism.record is None else mechanism.record


def learn(mechanism: Mechanism, book: Book, clearing: Clearing, deliveries: tuple[Deliveries, ...]) -> None:
    """Let a mechanism take note of a round that is over, and count for it what was delivered."""
    mechanism.close(replace(book, deliveries=deliveries), clearing)
    if mechanism.counts_deliveries:
        record = np.array(book.round.record)
        for its in deliveries:
            places = its.service, book.clients[its.offers]
            record[(0, *places)] += 1
            record[(1, *places)] += its.delivered
        mechanism.record = read_only(record)


def menu_of(mechanism: Mechanism, book: Book, clearing: Clearing, round_: int) -> Menu | None:
    """Return the menu of a round.

    Raises:
        ClearingError: it is none, or a payment on it is above the price of the offer.
    """
    menu, refuse = mechanism.menu(book, clearing), partial(_refusal, mechanism, "menu", round_)
    if menu is None:
        return None
    prices = clearing.price[clearing.core != NO_CORE]
    quantity, payment = (np.asarray(getattr(menu, name, None)) for name in ("quantity", "payment"))
    entries, parts = quantity.shape, np.unique(np.rint(quantity * MICRO) if quantity.dtype.kind == "f" else [])
    right = len(entries) == 1 and len(parts) == len(quantity) > 0 and (parts > 0).all() and (parts <= MICRO).all()
    if not right or payment.dtype.kind != "i" or payment.shape not in (entries, (len(prices), *entries)):
        raise refuse(": must return a Menu of different quantities above 0 and up to 1, and of whole payments for each")
    if (payment < 0).any() or (payment.size and (payment > prices[:, None]).any()):
        raise refuse(": a payment is below 0, or above the price of its offer")
    return Menu(quantity, payment.astype(np.int64))


def _refusal(mechanism: Mechanism, name: str, round_: int, problem: str) -> ClearingError:
    return ClearingError(f"mechanism {method(mechanism, name)}, round {round_}{problem}")


def _whole_numbers(
    values: object, shape: tuple[int, ...], what: str, refuse: Callable[[str], ClearingError], of_each: str = "offer"
) -> IntArray:
    """Return a read-only copy of what a mechanism gave, as int64 of a shape: an array, or a list."""
    problem, array = "", np.empty(0)
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of different lengths
        problem = f": {error}"
    # Not unsigned ones: those of 64 bits would wrap around.
    if problem or array.shape != shape or (array.dtype.kind != "i" and array.size):
        each = of_each if len(shape) == 1 else "service and client"
        problem = problem or f", not {array.dtype} of shape {array.shape}"
        raise refuse(f": {what} must be {prod(shape)} whole numbers, one for each {each}{problem}")
    whole = array.astype(np.int64)
    whole.setflags(write=False)
    return whole


DEFAULT = "pay-as-offered"
"""The paper's."""


MECHANISMS: Registry[type[Mechanism]] = Registry(
    "mechanism", "flmarket.mechanisms", built_in("des.mechanisms"), partial(subclass_problem, base=Mechanism)
)
"""All mechanisms, by name."""


def known(name: str) -> type[Mechanism] | None:
    """Return the mechanism of a name; None if it is a plug-in's that is not here."""
    try:
        return MECHANISMS.load(name)
    except InputError:
        return None


mechanism = MECHANISMS.decorator
"""Return a class decorator that registers a subclass of ``Mechanism``: ``@mechanism("second-price")``."""
