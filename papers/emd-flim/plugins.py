"""EMD-FLIM as plug-ins: what a server says clients are worth, and two rules of payment."""

import numpy as np

from flmarket import NO_CORE, Clearing, Offer, Policy, mechanism, policy, registered

ProportionalShare = registered("mechanism", "proportional-share")

SCALE = 1000.0  # money for a client of EMD 0: far above all bids, so that a value never limits a price


class NamesAll(Policy):
    """Names all clients at what they are worth; the mechanism chooses."""

    def worth(self, observation):
        raise NotImplementedError

    def act(self, observation):
        clients = np.flatnonzero(observation.available)
        return Offer(clients, self.worth(observation)[clients])


@policy("emd-flim")
class EMDFLIM(NamesAll):
    """EMD-FLIM: a client is worth e^-EMD."""

    def worth(self, observation):
        return SCALE * np.exp(-observation.privileged.emd)


@policy("flim")
class FLIM(NamesAll):
    """FLIM: all clients are worth the same, whatever their data."""

    def worth(self, observation):
        return np.full(observation.clients, SCALE)


@mechanism("last-bid")
class LastBid(ProportionalShare):
    """The public rule: where a service gets all clients that it names, the last one's bid sets the price of a value."""

    def clear(self, book):
        clearing = super().clear(book)
        price = clearing.price.copy()
        for service in np.unique(book.services):
            mine = np.flatnonzero(book.services == service)
            if (clearing.core[mine] != NO_CORE).all():
                ratio = (book.bids[mine] / np.maximum(book.payments[mine], 1)).max()
                price[mine] = np.minimum(price[mine], np.maximum(ratio * book.payments[mine], book.bids[mine]))
        return Clearing(clearing.core, price)


@mechanism("emd-greedy")
class EMDGreedy(ProportionalShare):
    """EMD-Greedy: the same winners, and each is paid its bid."""

    def clear(self, book):
        return Clearing(super().clear(book).core, book.bids)
