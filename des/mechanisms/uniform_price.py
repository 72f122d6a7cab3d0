"""Uniform prices: a client's winners pay what the best of its losers offered."""

import numpy as np

from des.allocation import NO_CORE, allocate
from des.mechanism import Book, Clearing, Mechanism
from des.money import MicroArray
from fl.arrays import BoolArray, IntArray

__all__ = ["UniformPrice"]


class UniformPrice(Mechanism):
    """A client's K highest payments win, and each pays the highest losing offer, at least the client's bid to it.

    With K cores of one client for sale, and services that want one core each and have no budget, offering one's value
    is a dominant strategy (Vickrey, "Counterspeculation, auctions, and competitive sealed tenders", Journal of Finance
    16, 1961). With budgets, or when a service wants many clients, it need not be: see docs/mechanisms/uniform-price.md.

    Fidelity to Vickrey (1961): checked:
    tests/des/mechanisms/test_tables.py::test_every_round_is_cleared_as_it_was_worked_out_by_hand,
    tests/des/mechanisms/test_sources.py::test_for_one_client_a_service_pays_clarke_what_vickrey_asks,
    tests/flmarket/benchmark/certify/test_theorems.py::test_no_gain_is_found_where_theory_has_none.
    """

    summary = "the K highest payments win, and each pays the highest losing one, at least the bid"
    by_client = True

    def clear(self, book: Book) -> Clearing:
        core = allocate(book.services, book.clients, book.payments, book.capacity, book.tie_order)
        lost = core == NO_CORE
        return Clearing(core, np.maximum(book.asks, best_of(book.clients, book.payments, lost)))


def best_of(
    clients: IntArray,  # [offers] the client of each offer
    payments: MicroArray,  # [offers] micro-units
    among: BoolArray,  # [offers] whether the offer counts
) -> MicroArray:
    """Return, for each offer, the highest payment to its client among some offers, micro-units; 0 if there is none."""
    best = np.zeros(clients.max(initial=-1) + 1, dtype=np.int64)
    np.maximum.at(best, clients[among], payments[among])
    return best[clients]
