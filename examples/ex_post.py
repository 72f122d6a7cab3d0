"""Two mechanisms that settle after delivery, and may pay less than the bid; docs/conduct.md has what they pay.

flmarket run quickstart --plugin examples/ex_post.py --set market.mechanism=audit --rounds 10
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from flmarket import Book, Clearing, Deliveries, Mechanism, allocate, by_service, mechanism


@mechanism("pay-for-gain")
class PayForGain(Mechanism):
    """As the paper's, but a service pays nobody in a round in which its accuracy has not risen."""

    below_bid = True

    def clear(self, book: Book) -> Clearing:
        """Serve as the paper does."""
        return Clearing(
            allocate(book.services, book.clients, book.payments, book.capacity, book.tie_order), book.payments
        )

    def settle(self, book: Book, clearing: Clearing, deliveries: Deliveries) -> np.ndarray:
        """Pay all that was offered, or nothing."""
        return book.payments[deliveries.offers] * (deliveries.after > deliveries.before)


@mechanism("audit")
class Audit(Mechanism):
    """As the paper's, but each client serves alone once: who leaves the accuracy as it was is paid and served no more.

    From the second round on, as in the first one nobody knows the accuracy before, a service for which clients would
    serve that have not been audited takes one of them alone: the one that it pays the most.
    """

    below_bid = True

    def __init__(self) -> None:
        """Begin without an audit."""
        self._passed: dict[int, bool] = {}  # each audited client, and whether it has changed the model

    def clear(self, book: Book) -> Clearing:
        """Serve as the paper does whom the audits leave."""
        left = np.isin(book.clients, [client for client, passed in self._passed.items() if not passed], invert=True)
        waiting = left & np.isin(book.clients, list(self._passed), invert=True) & (book.round.number > 1)
        for _, offers in by_service(book):
            if len(new := offers[waiting[offers]]):
                alone = new[np.argmax(book.payments[new])]
                left[offers] = False
                left[alone] = True
                waiting[book.clients == book.clients[alone]] = False  # no other service audits it, too
        [taken] = np.nonzero(left)
        services, clients, payments = (column[taken] for column in (book.services, book.clients, book.payments))
        core = np.full(len(book.clients), -1)
        core[taken] = allocate(services, clients, payments, book.capacity, book.tie_order)
        return Clearing(core, book.payments)

    def settle(self, book: Book, clearing: Clearing, deliveries: Deliveries) -> np.ndarray:
        """Pay what was offered, but nothing for a model that was sent back as it was."""
        return book.payments[deliveries.offers] * (not self._unchanged(deliveries))

    def close(self, book: Book, clearing: Clearing) -> None:
        """Note whom the round has audited."""
        for deliveries in book.deliveries:
            if book.round.number > 1 and len(deliveries.offers) == 1 and deliveries.delivered.all():
                client = int(book.clients[deliveries.offers[0]])
                self._passed.setdefault(client, not self._unchanged(deliveries))

    def state(self) -> Mapping[str, Any]:
        """Return who has been audited."""
        return {"passed": [[client, passed] for client, passed in self._passed.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back who has been audited."""
        self._passed = dict(map(tuple, state["passed"]))

    @staticmethod
    def _unchanged(deliveries: Deliveries) -> bool:
        return len(deliveries.offers) == 1 and deliveries.after == deliveries.before
