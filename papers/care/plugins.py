"""CARE-CO and CARE-NO as mechanisms: several services with budgets hire clients of groups that do not go together."""

from fractions import Fraction

import numpy as np

from flmarket import NO_CORE, Clearing, Mechanism, Offer, Policy, mechanism, policy


class Hiring(Mechanism):
    """Hires each client for one service at most, and for each service at most so many of each group.

    A client's reputation is the most that services offer for it, and its bid the most that it asks of one of them, as
    both are meant to be the same for all. Its group is its number modulo ``groups``.

    Args:
        groups: how many groups there are.
        limits: how many of a group a service can have: a number, or [M][groups].
    """

    keeps_budgets = True

    def __init__(self, *, groups: int = 10, limits: int | list = 3):
        if groups < 1 or np.min(limits) < 0:
            raise ValueError("groups must be at least 1, limits not negative")
        self.groups, self.limits = groups, limits

    def clear(self, book):
        self.limit = np.broadcast_to(np.asarray(self.limits), (len(book.budgets), self.groups))
        self.offers = {}  # of each client, by service, in the order of its draws
        draws = book.tie_order(book.clients)[np.arange(len(book.clients)), book.services]
        for place in np.lexsort((draws, book.clients)).tolist():
            self.offers.setdefault(int(book.clients[place]), {})[int(book.services[place])] = place
        first = {i: next(iter(of.values())) for i, of in self.offers.items()}
        self.order = sorted(self.offers, key=lambda i: draws[first[i]])  # of equal clients the first comes first
        self.worth = {i: max(int(book.payments[at]) for at in of.values()) for i, of in self.offers.items()}
        self.bid = {i: max(int(book.asks[at]) for at in of.values()) for i, of in self.offers.items()}
        core, price = np.full(len(book.clients), NO_CORE, np.int64), book.asks.copy()
        for i, (m, paid) in self.hired(book).items():
            place = self.offers[i][m]
            core[place], price[place] = 0, min(paid, int(book.payments[place]))
        return Clearing(core, price)

    def placed(self, order, most=None):
        """Return the services of as many clients as have room together; who comes first has it.

        Args:
            order: clients, the best first: those of a matroid, so that taking each that fits is best.
            most: [M] how many clients each service can have in all; by default any number.
        """
        at = {}

        def place(i, tried):
            tried.add(i)
            for m in self.offers[i]:
                mine = [o for o, other in at.items() if other == m]
                alike = [o for o in mine if o % self.groups == i % self.groups]
                full = len(alike) >= self.limit[m, i % self.groups]
                if not full and (most is None or len(mine) < most[m]):
                    at[i] = m
                    return True
                for o in (o for o in (alike if full else mine) if o not in tried):  # who could go elsewhere
                    at[i] = at.pop(o)
                    if place(o, tried):
                        return True
                    at[o] = at.pop(i)
            return False

        for i in order:
            place(i, set())
        return at

    def by_price(self):
        """Return the clients in the order of bids per reputation."""
        return sorted(self.order, key=lambda i: Fraction(self.bid[i], max(self.worth[i], 1)))


@mechanism("care-co")
class CareCO(Hiring):
    """Services pool their budgets, and hire the most reputation of the cheapest per reputation, at one price of it."""

    platform_budget = True

    def hired(self, book):
        ranked, budget = self.by_price(), sum(book.budgets.tolist())
        unit = [Fraction(self.bid[i], max(self.worth[i], 1)) for i in ranked]

        def best(k):
            return self.placed(sorted(ranked[:k], key=lambda i: -self.worth[i]))

        low, high, at = 0, len(ranked), {}
        while low < high:  # whether the k cheapest can be afforded changes once, from true to false
            k = (low + high + 1) // 2
            those = best(k)
            if unit[k - 1] * sum(self.worth[i] for i in those) <= budget:
                low, at = k, those
            else:
                high = k - 1
        total = sum(self.worth[i] for i in at)
        price = min([Fraction(budget, max(total, 1)), *unit[low : low + 1]])
        return {i: (m, int(self.worth[i] * price)) for i, m in at.items()}


@mechanism("care-no")
class CareNO(Hiring):
    """Each service has its own budget; of one class of reputations, drawn, the cheapest are hired at one price.

    Args:
        base: reputations of one class differ by less than this factor.
    """

    def __init__(self, *, groups: int = 10, limits: int | list = 3, base: float = 10):
        super().__init__(groups=groups, limits=limits)
        if not base > 1:
            raise ValueError("base must be above 1")
        self.base = base

    def hired(self, book):
        ranked = sorted(self._drawn_class(book), key=lambda i: self.bid[i])
        budgets = book.budgets.tolist()
        prices = sorted({Fraction(budget, t) for budget in budgets if budget for t in range(1, len(ranked) + 1)})
        low, high, at = 0, len(prices), {}
        while low < high:  # once all places that the budgets pay for are filled, they are at any higher price
            middle = (low + high) // 2
            most = [int(budget / prices[middle]) for budget in budgets]
            filled = self.placed([i for i in ranked if self.bid[i] <= prices[middle]], most)
            if len(filled) >= sum(most):
                high, at = middle, filled
            else:
                low = middle + 1
        return {i: (m, int(prices[low])) for i, m in at.items()}

    def _drawn_class(self, book):
        lowest, of = max(min(self.worth.values(), default=1), 1), {}
        for i, worth in self.worth.items():
            of[i] = 0
            while worth >= lowest * self.base ** (of[i] + 1):
                of[i] += 1
        every = book.tie_order(np.array(self.order, np.int64))[:, 0]  # together one draw, whatever clients' numbers
        drawn = sum(int(draw * 2**32) for draw in every.tolist()) % (max(of.values(), default=0) + 1)
        return [i for i in self.order if of[i] == drawn]


@policy("by-data")
class ByData(Policy):
    """Says that each image of a client is worth 0.1, the same to all services."""

    def act(self, observation):
        clients = np.flatnonzero(observation.available)
        return Offer(clients, 0.1 * observation.privileged.data_size[clients])
