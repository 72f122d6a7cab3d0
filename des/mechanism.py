"""How a round is cleared: which offers win a core, and what each winner pays; the one seam for payment mechanisms."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from des.allocation import NO_CORE
from des.money import MicroArray, text
from fl.arrays import FloatArray, IntArray
from fl.errors import RunError


@dataclass(frozen=True, slots=True)
class Book:
    """All offers of a round, one entry for each. They keep constraints (4) and (5). Money is in micro-units.

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
    """One line for lists of mechanisms."""

    @abstractmethod
    def clear(self, book: Book) -> Clearing:
        """Decide who is served at what price, from the book alone: equal books must be cleared equally.

        The clearing must keep the rules that the function ``clear`` checks.
        """


class ClearingError(RunError):
    """A mechanism failed, or broke a rule that all mechanisms must keep."""


def clear(mechanism: Mechanism, book: Book, round_: int) -> Clearing:
    """Clear a round, and check that the clearing keeps the market's rules.

    Each core of a client serves at most one offer (eq. 2), no client gets less than its bid (eq. 5), and no service
    pays more than it offered, so that budgets are kept (eq. 4).

    Raises:
        ClearingError: the mechanism broke one of these rules, or raised an exception.
    """
    where = f"mechanism {type(mechanism).__name__}, round {round_}"
    try:
        clearing = mechanism.clear(book)
    except Exception as error:
        raise ClearingError(f"{where}: it failed: {error!r}") from error
    _check(book, clearing, where)
    return clearing


def _check(book: Book, clearing: Clearing, where: str) -> None:
    core, price = np.asarray(clearing.core), np.asarray(clearing.price)
    for name, array in (("core", core), ("price", price)):
        if array.shape != book.clients.shape or array.dtype.kind != "i":
            raise ClearingError(
                f"{where}: {name} must be {len(book.clients)} whole numbers, one for each offer, "
                f"not {array.dtype} of shape {array.shape}"
            )
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
