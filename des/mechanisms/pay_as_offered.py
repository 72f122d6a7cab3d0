"""The paper's mechanism: a client's K cores go to the K highest payments, and each winner pays what it offered."""

from des.allocation import allocate
from des.mechanism import Book, Clearing, Mechanism

__all__ = ["PayAsOffered"]


class PayAsOffered(Mechanism):
    """Eqs. (2), (4) and (5) with first prices, as in Cheng et al."""

    summary = "the K highest payments win, and each pays what it offered (the paper's)"
    by_client = True

    def clear(self, book: Book) -> Clearing:
        core = allocate(book.services, book.clients, book.payments, book.capacity, book.tie_order)
        return Clearing(core, book.payments)
