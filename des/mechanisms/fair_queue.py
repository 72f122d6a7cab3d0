"""Fair queues: a service that was served less than its share goes first, weighed against what it offers (Lyapunov)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from des.allocation import NO_CORE, allocate
from des.mechanism import Book, Clearing, Mechanism
from des.money import MICRO
from fl.arrays import IntArray
from flmarket.core.plugin_options import in_range

__all__ = ["FairQueue"]


class FairQueue(Mechanism):
    """A scheduler of services: each client's K cores go to the services with the highest backlog and offer.

    After Shi and Yu, "Fairness-aware job scheduling for multi-job federated learning" (FairFedJS), arXiv:2401.02740,
    2024: a Lyapunov scheduler that weighs virtual queues of unmet demand against the payments that jobs offer. Here

    * service m has a virtual queue Q_m of clients that are owed to it, 0 at first. After each round
      ``Q_m <- max(0, Q_m + s w_m - n_m)``, with w_m its offers, n_m its offers that won a core, and s the share of all
      services' offers that did. A service whose offers win less often than the average builds up a queue.
    * a client serves the K services with the highest ``Q_m + weight * offer``, and each pays what it offered. This
      maximises the sum of ``Q_m + weight * offer`` over what is served, under the limit of K cores: the rule that keeps
      a bound of the queues' drift, less the weighted payments, at its least (drift plus penalty).

    What is adapted: FairFedJS orders whole jobs, one after the other, by queues for the types of data that they demand,
    and lets them pick clients by reputation, at payments that follow demand. In this market services name clients and
    payments themselves, in sealed offers; so queues belong to services, the order holds for each client, and there is
    neither reputation nor a payment rule: this is an allocation rule, and the payment is the offer. We know the paper's
    abstract and a summary, not its equations: those above are ours, after drift plus penalty (Neely, "Stochastic
    network optimization with application to communication and queueing systems", Morgan and Claypool, 2010).

    Fidelity to Neely (2010), drift plus penalty: checked:
    tests/des/mechanisms/test_sources.py::test_what_is_served_has_the_highest_sum_of_backlog_and_weighted_payments,
    tests/des/mechanisms/test_theorems.py::test_queues_lose_nothing.

    Fidelity to Shi and Yu (FairFedJS, 2024): interpretation: queues belong to services and order each client; the
    equations are ours, since the abstract and a summary alone were read.
    """

    summary = "services that won less than their share go first, weighed against their offers (after FairFedJS)"

    def __init__(
        self,
        *,
        # how many clients of backlog a unit of money weighs as much as, from 0 (the longest queue first) to 1000
        # (nearly ``pay-as-offered``)
        weight: float = 0.2,
    ) -> None:
        self._weight = in_range("weight", weight, 0, 1000)
        self._queues: IntArray | None = None

    def clear(self, book: Book) -> Clearing:
        index = self._backlog(book)[book.services] + np.rint(self._weight * book.payments).astype(np.int64)
        core = allocate(book.services, book.clients, index, book.capacity, book.tie_order)
        return Clearing(core, book.payments)

    def close(self, book: Book, clearing: Clearing) -> None:
        """Add each service's fair share of what was served to its queue, and take off what it was served."""
        queues = self._backlog(book)
        won = clearing.core != NO_CORE
        wanted = np.bincount(book.services, minlength=len(queues))
        served = np.bincount(book.services[won], minlength=len(queues))
        if wanted.sum():
            share = MICRO * wanted * served.sum() // wanted.sum()
            self._queues = np.maximum(0, queues + share - MICRO * served)

    def state(self) -> Mapping[str, Any]:
        return {"queues": None if self._queues is None else self._queues.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        queues = state["queues"]
        self._queues = None if queues is None else np.array(queues, dtype=np.int64)

    def _backlog(self, book: Book) -> IntArray:
        """Return the queue of each service, [M], in millionths of a client."""
        return np.zeros(len(book.budgets), dtype=np.int64) if self._queues is None else self._queues
