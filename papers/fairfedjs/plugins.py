"""FairFedJS, an interpretation: jobs choose clients by an index of queues, payments, costs and reputation."""

import numpy as np

from flmarket import NO_CORE, Clearing, Mechanism, allocate, measure, mechanism

MICRO = 1_000_000


def index(queue, payment, cost, reputation, sigma):
    """Return the Job Scheduling Index of each job: the lowest chooses first. ``payment`` is that for each client."""
    return -queue - sigma * payment + sigma * cost / reputation


def later(queue, demand, supply):
    """Return the queues of the next round: what is demanded and not supplied adds up."""
    return np.maximum(0, queue + demand - supply)


@mechanism("fairfedjs")
class FairFedJS(Mechanism):
    """Jobs choose in the ascending order of the index, each of all clients still free, and pay what they offer.

    ``types`` has the type of data of each service, from 0; without it, each has its own. Those of one type share a
    queue, and the mean bid and reputation of the clients that they want. A client's reputation is that of the Beta
    reputation system: (delivered + 1) / (taken + 2).
    """

    counts_deliveries = True

    def __init__(self, *, types=(), sigma=1.0):
        if not sigma >= 0 or any(kind < 0 for kind in types):
            raise ValueError("sigma and types must not be negative")
        self.types, self.sigma, self.queue = types, sigma, None

    def clear(self, book):
        types, queue = self.per_type(book)
        kind, services, kinds = types[book.services], len(types), len(queue)
        taken, delivered = book.round.record.sum(axis=1)[:, book.clients]
        wanted = np.maximum(np.bincount(book.services, minlength=services), 1)
        of_kind = np.maximum(np.bincount(kind, minlength=kinds), 1)
        payment = np.bincount(book.services, book.payments / MICRO, services) / wanted
        cost = np.bincount(kind, book.bids / MICRO, kinds) / of_kind
        reputation = np.bincount(kind, (delivered + 1) / (taken + 2), kinds) / of_kind
        reputation[reputation == 0] = 1  # of a type for which nobody offers
        psi = index(queue[types], payment, cost[types], reputation[types], self.sigma)
        place = np.lexsort((book.tie_order(0), psi)).argsort()  # equal ones by a keyed draw
        first = services - place[book.services]
        return Clearing(allocate(book.services, book.clients, first, book.capacity, book.tie_order), book.payments)

    def close(self, book, clearing):
        types, queue = self.per_type(book)
        kind, won = types[book.services], clearing.core != NO_CORE
        self.queue = later(queue, np.bincount(kind, minlength=len(queue)), np.bincount(kind[won], minlength=len(queue)))

    def per_type(self, book):
        """Return the type of each service, and the queue of each type."""
        types = np.array(self.types, dtype=np.int64) if self.types else np.arange(len(book.budgets))
        if len(types) != len(book.budgets):
            raise ValueError(f"types must be as many as services, {len(book.budgets)}")
        return types, np.zeros(types.max() + 1, dtype=np.int64) if self.queue is None else self.queue

    def state(self):
        return {"queue": None if self.queue is None else self.queue.tolist()}

    def restore(self, state):
        self.queue = None if state["queue"] is None else np.array(state["queue"], dtype=np.int64)


@measure("unserved-variance", better="less", digits=1)
def unserved_variance(run):
    """Variance over the services of the share of their offers that were refused in the whole run, in squared points."""
    sums = run.rounds.groupby("service")[["wanted", "served"]].sum()
    return float((100 * (1 - sums["served"] / sums["wanted"])).var(ddof=0))
