"""The paper's mechanism: a client's K cores go to the K highest payments, and each winner pays what it offered."""

from des.allocation import allocate
from des.mechanism import Book, Clearing, Mechanism

__all__ = ["PayAsOffered"]


class PayAsOffered(Mechanism):
    """Eqs. (2), (4) and (5) with first prices, as in Cheng et al.

    Fidelity to Cheng et al. (2023), eqs. (2), (4) and (5): checked:
    tests/des/mechanisms/test_tables.py::test_every_round_is_cleared_as_it_was_worked_out_by_hand,
    tests/des/test_equations.py::test_equation_4_the_payments_offered_are_within_the_budget,
    tests/des/test_equations.py::test_equation_5_a_payment_is_at_least_the_bid.
    """

    summary = "the K highest payments win, and each pays what it offered (the paper's)"
    by_client = True

    def clear(self, book: Book) -> Clearing:
        core = allocate(book.services, book.clients, book.payments, book.capacity, book.tie_order)
        return Clearing(core, book.payments)
