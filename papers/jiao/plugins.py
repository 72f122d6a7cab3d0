"""The auction of Jiao et al. as far as it could be read: a set of clients is worth eq. (6) of all their data."""

import numpy as np

from flmarket import Mechanism, Offer, Policy, by_service, choose, mechanism, policy

K = (0.361, 4.348, 1e-3, 0.993, 0.31, 1.743)
"""The parameters k_1 to k_6 of the public code, which are those of ``dqi = "jiao"``."""


def phi(size, emd):
    """Return eq. (6), what data are worth, at most 1: of D images in all, and the mean EMD of the clients."""
    alpha = K[3] * np.exp(-(((emd + K[4]) / K[5]) ** 2))
    return alpha - K[0] * np.exp(-K[1] * (K[2] * size) ** alpha)


@mechanism("set-auction")
class SetAuction(Mechanism):
    """Each service takes the client that adds the most worth less its bid to its set, as long as that is positive.

    Who is taken is paid the highest bid at which it would still be, and at most the offer, which decides nothing else.

    Args:
        worth: what a set with phi = 1 is worth, money (k_7 of the public code).
        each: what each client after the first costs the platform besides, money.
    """

    def __init__(self, *, worth: float = 100, each: float = 0.25):
        self.worth, self.each = worth, each

    def clear(self, book):
        price, taken = book.bids.copy(), []
        for _, mine in by_service(book):
            for place in self.taken(book, mine.tolist()):
                most = self.threshold(book, mine.tolist(), place)
                price[place] = np.clip(most, book.bids[place], book.payments[place])
                taken.append(place)
        return choose(book, np.array(sorted(taken), np.int64), price)

    def taken(self, book, places):
        """Return those offers of a service that are taken, by their places in the book, in order."""
        those, left = [], [*places]
        while left and (gains := self.added(book, those, left) - book.bids[left]).max() > 0:
            those.append(left.pop(int(gains.argmax())))
        return those

    def threshold(self, book, places, own):
        """Return the highest bid at which an offer is taken: the most it adds above the best of the others, in a step.

        The steps are those that the others would take without it.
        """
        those, left, most = [], [place for place in places if place != own], 0.0
        while True:
            gains = self.added(book, those, left) - book.bids[left]
            best = gains.max(initial=0.0)
            most = max(most, float(self.added(book, those, [own])[0] - best))
            if best <= 0:
                return np.floor(most)
            those.append(left.pop(int(gains.argmax())))

    def added(self, book, those, others):
        """Return what each of the others adds to the worth of a set, less what it costs the platform, micro-units."""
        size, emd = self._data(book, those)
        more, mores = self._data(book, others)
        n = len(those)
        before = self.worth * phi(size.sum(), emd.mean()) if n else 0.0
        after = self.worth * phi(size.sum() + more, (emd.sum() + mores) / (n + 1)) - self.each * bool(n)
        return 1e6 * (after - before)

    def _data(self, book, places):
        at = book.services[places], book.clients[places]
        return book.round.data_size[at], book.round.emd[at]


@policy("names-all")
class NamesAll(Policy):
    """Names all clients, and divides its budget among them; the mechanism chooses, and pays less."""

    def act(self, observation):
        clients = np.flatnonzero(observation.available)
        return Offer(clients, np.full(len(clients), np.floor(1e6 * observation.budget / max(len(clients), 1)) / 1e6))
