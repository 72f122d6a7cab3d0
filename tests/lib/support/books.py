"""The offers of a round as mechanisms see them, and what becomes of them, in money."""

from collections.abc import Sequence

import numpy as np

from des.allocation import NO_CORE
from des.mechanism import Book, Mechanism, clearing_of
from des.money import to_micro
from fl.arrays import FloatArray, IntArray


def book_of(
    *offers: Sequence[float],
    cores: int = 1,
    budgets: Sequence[float] = (20.0, 20.0, 20.0),
    ask: Sequence[float] | None = None,
    draws: Sequence[float] = (),
) -> Book:
    """A book of (service, client, payment, bid); the bid may be left out where it is 0.

    Ties go to the service of the lower index, unless there are ``draws``.
    """
    table = np.array([(*offer, 0.0)[:4] for offer in offers], dtype=np.float64).reshape(-1, 4)
    order = np.array(draws) if draws else np.arange(len(budgets)) / len(budgets)

    def tie_order(clients: IntArray) -> FloatArray:
        return np.broadcast_to(order, (*np.shape(clients), len(order)))

    bids = to_micro(table[:, 3])
    return Book(
        table[:, 0].astype(np.int64),
        table[:, 1].astype(np.int64),
        to_micro(table[:, 2]),
        bids,
        bids if ask is None else to_micro(np.array(ask)),
        to_micro(np.array(budgets, dtype=np.float64)),
        cores,
        tie_order,
    )


def prices_paid(mechanism: Mechanism, book: Book) -> list[float | None]:
    """Return what each offer pays; None where it is refused."""
    clearing = clearing_of(mechanism, book, 1)
    prices = (clearing.price / 1e6).tolist()
    return [None if core == NO_CORE else price for core, price in zip(clearing.core.tolist(), prices, strict=True)]
