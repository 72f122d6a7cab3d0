"""How a round is cleared: which offers win a core, and what each winner pays; the one seam for payment mechanisms."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from des.allocation import NO_CORE
from des.money import MicroArray, text
from fl.arrays import FloatArray, IntArray
from fl.blame import Foreign, blame, refusal, represent
from fl.errors import RunError


@dataclass(frozen=True, slots=True)
class Book:
    """All offers of a round, one entry for each. They keep constraints (4) and (5). Money is in micro-units.

    The arrays are read-only: the clearing is checked against them.

    Attributes:
        services: [offers] index of the service that offers.
        clients: [offers] index of the client that it wants.
        payments: [offers] what it offers to pay.
        bids: [offers] what the client asks of this service.
        cores: K, how many services a client can serve at once (eq. 2).
        tie_order: returns, for a client, a random number for each service [M]. Of equal payments, that of the service
            with the lower number goes first. The numbers are drawn when it is called.
    """

    services: IntArray
    clients: IntArray
    payments: MicroArray
    bids: MicroArray
    cores: int
    tie_order: Callable[[int], FloatArray]

    def __post_init__(self) -> None:
        """Keep read-only views; the caller's own arrays stay as they are."""
        for name in ("services", "clients", "payments", "bids"):
            view = getattr(self, name).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)


@dataclass(frozen=True, slots=True)
class Clearing:
    """What a mechanism decides.

    Attributes:
        core: [offers] the client's core that serves the offer, 0 to K - 1, or NO_CORE for a refused offer.
        price: [offers] what the service pays if the client delivers, micro-units; without meaning for refused offers.
    """

    core: IntArray
    price: MicroArray


class Mechanism(ABC):
    """Clears rounds. Subclasses may take keyword arguments: the scenario's ``market.options``."""

    summary: ClassVar[str] = ""
    """One line for ``flmarket plugins``; by default the first line of the docstring."""

    @abstractmethod
    def clear(self, book: Book) -> Clearing:
        """Decide who is served at what price, from the book alone: equal books must be cleared equally.

        The clearing must keep the rules that the function ``clear`` checks.
        """


class ClearingError(RunError):
    """A mechanism failed, or broke a rule that all mechanisms must keep."""


def clear(mechanism: Mechanism, book: Book, round_: int) -> Clearing:
    """Clear a round, check that the clearing keeps the market's rules, and return it as arrays of int64.

    Each core of a client serves at most one offer (eq. 2), no client gets less than its bid (eq. 5), and no service
    pays more than it offered, so that budgets are kept (eq. 4).

    Raises:
        ClearingError: the mechanism broke one of these rules, returned something else than a Clearing of whole numbers,
            or raised an exception.
    """
    where = f"mechanism {type(mechanism).__name__}, round {round_}"
    with Foreign(lambda error: ClearingError(f"{where}: failed: {represent(error)}{blame(error)}")):
        clearing = mechanism.clear(book)
    if not isinstance(clearing, Clearing):
        raise ClearingError(f"{where}: clear() must return a Clearing, not {type(clearing).__name__}")
    count = len(book.clients)
    checked = Clearing(
        _whole_numbers(clearing.core, count, f"{where}: core"),
        _whole_numbers(clearing.price, count, f"{where}: price"),
    )
    _check(book, checked, where)
    return checked


def _whole_numbers(given: object, count: int, what: str) -> IntArray:
    """Return a copy of what a mechanism gave, as int64 [count]: an array, or a list."""
    wanted = f"{what} must be {count} whole numbers, one for each offer"
    # Lists of lists of different lengths, or an object that only looks like an array.
    with Foreign(lambda error: ClearingError(f"{wanted}: {refusal(error)}{blame(error)}")):
        array = np.asarray(given)
    # Not unsigned ones: those of 64 bits would wrap around.
    if array.shape != (count,) or (array.dtype.kind != "i" and count):
        raise ClearingError(f"{wanted}, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def _check(book: Book, clearing: Clearing, where: str) -> None:
    core, price = clearing.core, clearing.price
    served = core != NO_CORE
    won, clients = core[served], book.clients[served]
    if ((won < 0) | (won >= book.cores)).any():
        found = f"{int(won.min())} to {int(won.max())}"
        raise ClearingError(f"{where}: cores are 0 to {book.cores - 1}, not {found} (eq. 2)")
    if len(np.unique(clients * book.cores + won)) < len(won):
        raise ClearingError(f"{where}: one core of a client serves two offers (eq. 2)")
    for wrong, problem in (
        (served & (price < book.bids), "is below the bid {bid} (eq. 5)"),
        (served & (price > book.payments), "is above the offer of {payment} (eq. 4)"),
    ):
        if wrong.any():
            at = int(wrong.argmax())
            problem = problem.format(bid=text(int(book.bids[at])), payment=text(int(book.payments[at])))
            raise ClearingError(f"{where}, client {int(book.clients[at])}: the price {text(int(price[at]))} {problem}")
