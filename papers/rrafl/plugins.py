"""RRAFL as plug-ins: the auction by reputation, and what two public codes make of it."""

import numpy as np

from flmarket import Mechanism, Offer, Policy, by_service, choose, mechanism, policy


def reputation(passed, failed):
    """Return a client's reputation after so many passes and failures; 1/e at first, which is ours."""
    good, bad = 0.4 * passed, 0.6 * failed
    x = (good - bad) / np.where(good + bad > 0, good + bad, 1)
    return np.exp(-np.exp(-5.5 * x))


@mechanism("rrafl")
class RRAFL(Mechanism):
    """The lowest bids per reputation win, as many as can be paid what the first loser asks per reputation.

    Reputations are what the service offers to pay, or, with reputation = "record", follow from the updates so far: one
    passes if it arrives and the model is not worse by more than 0.01.
    """

    keeps_budgets = True

    def __init__(self, *, reputation: str = "offer"):
        if reputation not in ("offer", "record"):
            raise ValueError("reputation must be offer or record")
        self._by_record, self._counts = reputation == "record", np.zeros((2, 0), np.int64)

    def clear(self, book):
        picked, price = np.zeros(len(book.clients), np.bool_), book.bids.copy()
        for m, mine in by_service(book):
            worth = self._reputations(book, mine)
            order = (book.bids[mine] / worth).argsort(kind="stable")
            ranked = mine[order]
            won, paid = self.bought(book.bids[ranked], worth[order], int(book.budgets[m]), book.clients[ranked])
            won = ranked[won]
            picked[won], price[won] = True, np.clip(np.floor(paid), book.bids[won], book.payments[won])
        return choose(book, picked.nonzero()[0], price)

    def bought(self, bids, worth, budget, clients):
        """Return who is bought from, of clients in the order of bids per reputation, and what each is paid."""
        unit, total = bids / worth, np.cumsum(worth)
        count = int(np.sum(unit[1:] * total[:-1] <= budget))  # which rises with each winner
        return np.arange(count), worth[:count] * unit[count] if count else worth[:0]

    def _reputations(self, book, mine):
        if not self._by_record:
            return np.maximum(book.payments[mine], 1) / 1e6
        return np.maximum(reputation(*self._known(book.clients[mine])[:, book.clients[mine]]), 1e-9)

    def _known(self, clients):
        """Return the counts of passes and failures, of at least these clients."""
        more = int(clients.max(initial=-1)) + 1 - self._counts.shape[1]
        return np.pad(self._counts, ((0, 0), (0, max(0, more))))

    def close(self, book, clearing):
        if self._by_record:
            self._counts = self._known(book.clients)
            for got in book.deliveries:
                passed = got.delivered & (got.after - got.before >= -0.01)
                np.add.at(self._counts, (np.where(passed, 0, 1), book.clients[got.offers]), 1)

    def state(self):
        return {"counts": self._counts.tolist()}

    def restore(self, state):
        self._counts = np.array(state["counts"], np.int64).reshape(2, -1)


@mechanism("rrafl-next-number")
class NextNumber(RRAFL):
    """A public code: whoever still fits is paid what the client of the next number asks; here, at least its own bid."""

    def bought(self, bids, worth, budget, clients):
        asked, won, paid, left = dict(zip(clients.tolist(), bids.tolist(), strict=True)), [], [], budget
        for i, client in enumerate(clients.tolist()):
            price = max(int(bids[i]), asked.get(client + 1, int(bids[i])))
            if price <= left:
                won, paid, left = [*won, i], [*paid, price], left - price
        return np.array(won, np.int64), np.array(paid)


@mechanism("rrafl-own-bid")
class OwnBid(RRAFL):
    """Another public code: the lowest bids per reputation win while the bids fit the budget, and are paid."""

    def bought(self, bids, worth, budget, clients):
        count = int(np.sum(np.cumsum(bids) <= budget))
        return np.arange(count), bids[:count]


@policy("names-all")
class NamesAll(Policy):
    """Names all clients, at far more than they ask, the same for all; the mechanism chooses."""

    def act(self, observation):
        clients = np.flatnonzero(observation.available)
        return Offer(clients, np.full(len(clients), 1000.0))
