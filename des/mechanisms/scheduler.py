"""Schedulers of the platform: it decides which service goes first, whatever they offer."""

from collections.abc import Sequence

import numpy as np

from des.allocation import allocate
from des.mechanism import Book, Clearing, Mechanism
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.plugin_options import one_of

__all__ = ["Scheduler"]

ORDERS = ("random", "fifo", "srsf", "venn")


class Scheduler(Mechanism):
    """A client serves the K services that come first in the platform's order; each pays what it offered.

    It is an allocation rule, not a payment rule: the payment is the offer.

    The orders are those in which resource managers of collaborative learning serve jobs:

    * ``random``: anew for each client and round.
    * ``fifo``: who came to the market first.
    * ``srsf``: shortest remaining service first: who wants the fewest clients that it does not have yet.
    * ``venn``: after Liu et al., "Venn: Resource management for collaborative learning jobs", MLSys 2025, whose
      abstract and public code we know. Services that the same clients can serve are a group, and clients are kept for
      groups that have few: see ``owners``. Among the services of a client's group the order is that of ``srsf``, then
      among those of the others, the scarcest group first. So none is idle where only another group wants it.

    Ties end in a keyed draw. What a service still wants of a round are the offers of it that stand.

    Fidelity to Liu et al. (Venn, 2025), groups and owners of the public code: checked:
    papers/venn/check.py::check_scarce_devices_are_kept_for_the_groups_that_have_no_others,
    papers/venn/check.py::check_a_long_queue_takes_over_as_the_public_code_lets_it,
    tests/des/mechanisms/test_scheduler.py::test_a_long_queue_takes_over_the_clients_of_a_short_one.

    Fidelity to Liu et al. (Venn, 2025): interpretation: groups and their owners follow the abstract and the public
    code, for services and cores in rounds.
    """

    summary = "the platform's order decides, not payment: random, first come, shortest remaining service, or Venn's"
    clears_standing = True

    def __init__(
        self,
        *,
        order: str,  # ``random``, ``fifo``, ``srsf`` or ``venn``
    ) -> None:
        self._order = one_of("order", order, ORDERS)

    def clear(self, book: Book) -> Clearing:
        core = allocate(book.services, book.clients, -self._places(book), book.capacity, book.tie_order)
        return Clearing(core, book.payments)

    def _places(self, book: Book) -> IntArray:
        """Return [offers] where the service of each stands in its client's order; equal where a draw decides."""
        if self._order == "random" or not len(book.services):
            return np.zeros(len(book.services), dtype=np.int64)
        seen = book.round
        if self._order == "fifo":
            return np.unique(seen.arrival, return_inverse=True)[1][book.services].astype(np.int64)
        demand: IntArray = seen.demand[book.services]
        if self._order == "srsf":
            return demand
        queued = np.flatnonzero(seen.demand)
        able, group = np.unique(seen.serves[queued], axis=0, return_inverse=True)
        group_of = np.zeros(len(seen.demand), dtype=np.int64)
        group_of[queued] = group.ravel()
        owner = owners(able, [np.sort(seen.demand[queued[group.ravel() == g]]) for g in range(len(able))])
        scarcity = able.sum(axis=1).argsort(kind="stable").argsort(kind="stable")
        of = group_of[book.services]
        first = np.where(owner[book.clients] == of, 0, 1 + scarcity[of])
        places: IntArray = first * (1 + seen.demand.max()) + demand
        return places


def owners(
    able: BoolArray,  # [groups, C] which clients can serve the services of each group
    demands: Sequence[IntArray],  # of each group, how many clients each of its services wants, ascending
) -> IntArray:
    """Return [C] the group that each client is kept for, by the heuristic of Venn; -1 for one that can serve none.

    Each client first falls to the group of all that it can serve which has the fewest clients. Then groups, those with
    the most clients first, take over from smaller ones as long as their queue is the longer one for its clients: as
    many of their services as get their clients before the other queue would be empty, by clients kept, against the
    other's services by its clients. As in Venn's public code, a group that does not take over from one does not from
    any smaller one.
    """
    supply = able.sum(axis=1)
    ascending = supply.argsort(kind="stable")
    owner = np.full(able.shape[1], -1, dtype=np.int64)
    for g in ascending.tolist():
        owner[able[g] & (owner < 0)] = g
    queue = [demand.astype(np.float64) for demand in demands]
    descending = ascending[::-1].tolist()
    for place, g in enumerate(descending):
        for other in descending[place + 1 :]:
            own, theirs = np.count_nonzero(owner == g), np.count_nonzero(owner == other)
            taken = (owner == other) & able[g]
            if not taken.any():
                continue
            if own and _ahead(queue[g] / own, queue[other] / theirs) * theirs <= len(queue[other]) * own:
                break
            owner[taken] = g
            queue[g] = np.concatenate([queue[g], queue[other]])
    return owner


def _ahead(waits: FloatArray, others: FloatArray) -> int:
    """Return how many services of a queue get all of their clients before another queue is empty; all if it is it."""
    total = others.sum()
    return len(waits) if waits.sum() <= total else int(np.searchsorted(waits.cumsum(), total))
