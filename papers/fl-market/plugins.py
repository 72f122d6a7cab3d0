"""FL-Market as plug-ins: what privacy is worth to its owners, two auctions that buy it, and a table to learn from."""

from math import exp, sqrt

import numpy as np

from flmarket import (
    NO_CORE,
    Cost,
    Mechanism,
    Menu,
    Offer,
    Policy,
    Response,
    by_service,
    choose,
    cost,
    dataset,
    mechanism,
    policy,
    response,
    stream,
)  # fmt: skip

TENTHS = np.arange(1, 11)
SHAPES = {
    "linear": lambda x: 2 * x,
    "square": lambda x: x * x,
    "root": lambda x: 2 * sqrt(x),
    "exp": lambda x: exp(x) - 1,
}


def limits(clients):
    """Return the privacy budget of each owner, the most epsilon that it sells, in tenths: 1, 8, 5, ..., 4 of ten."""
    return TENTHS[7 * clients % 10]


@cost("valuation")
class Valuation(Cost):
    """An owner's valuation of its privacy budget: its type times a function of the budget."""

    uses_speed = False

    def __init__(self, *, limit: float = 1.0, shape: str = "linear"):
        self._amount = SHAPES[shape](limit)

    def amounts(self, work):
        return self._amount * work.unit + 0 * work.data_size


@response("single-minded")
class SingleMinded(Response):
    """Owners sell what they are asked for, and value it as their whole privacy budget."""

    def respond(self, awards):
        return np.ones(len(awards.price)) if awards.menu is None else self.best_entry(awards, awards.menu)

    def cost(self, awards, quantity):
        return np.where(quantity > 0, awards.cost, 0.0)


class PrivacyAuction(Mechanism):
    """Buys privacy of the owners that a buyer names, within its budget. There is one buyer if owners respond."""

    keeps_budgets = True
    one = 10  # what an epsilon of 1 is in ``limits``

    def limits(self, clients):
        return limits(clients)

    def bought(self, bids, limit, budget):
        """Return who is bought from, by their places, and what each is paid, micro-units."""
        raise NotImplementedError

    def clear(self, book):
        picked, price = np.zeros(len(book.clients), np.bool_), np.zeros(len(book.clients), np.int64)
        for m, mine in by_service(book):
            won, paid = self.bought(book.bids[mine], self.limits(book.clients[mine]), int(book.budgets[m]))
            picked[mine[won]], price[mine[won]] = True, np.minimum(paid, book.payments[mine[won]])
        return choose(book, picked.nonzero()[0], price)


@mechanism("all-in")
class AllIn(PrivacyAuction):
    """The cheapest epsilon first, whoever the budget can pay at its own price per epsilon; then all of it is spent."""

    def bought(self, bids, limit, budget):
        won, total = [], 0
        for i in np.argsort(bids / limit, kind="stable").tolist():
            if int(bids[i]) * (total + int(limit[i])) <= budget * int(limit[i]):
                won, total = [*won, i], total + int(limit[i])
        return won, [budget * int(limit[i]) // total for i in won]

    def menu(self, book, clearing):
        taken = clearing.core != NO_CORE
        own = self.limits(book.clients[taken])[:, None] == TENTHS
        return Menu(TENTHS / 10, np.where(own, clearing.price[taken][:, None], 0))


@mechanism("fair-query")
class FairQuery(PrivacyAuction):
    """The k cheapest of n owners sell an epsilon of 1 / (n - k), at the lower of budget / k and the next one's bid."""

    def bought(self, bids, limit, budget):
        order, count, owners = np.argsort(bids, kind="stable"), 0, len(bids)
        for k in range(1, owners):
            if bids[order[k - 1]] * k > budget or limit[order[:k]].min() * (owners - k) < self.one:
                break
            count = k
        return order[:count], [min(budget // max(count, 1), int(bids[order[count]]))] * count

    def menu(self, book, clearing):
        taken = clearing.core != NO_CORE
        share = 1 / max(1, len(taken) - taken.sum())
        return Menu(np.array([share]), clearing.price[taken][:, None])


@policy("names-all")
class NamesAll(Policy):
    """Names all owners, at far more than they ask; the mechanism chooses."""

    def act(self, observation):
        clients = np.flatnonzero(observation.available)
        return Offer(clients, np.full(len(clients), 1000.0))


@dataset("clouds")
def clouds():
    """Two clouds in 20 dimensions, one for each class, whose centres are 4 deviations apart."""
    random, parts = stream(0, "papers/fl-market", "clouds"), []
    for rows in (30_000, 10_000):
        labels = np.arange(rows) % 2
        away = (2 * labels[:, None] - 1) * 2 / sqrt(20)
        parts += [(random.standard_normal((rows, 20)) + away).astype(np.float32), labels]
    return tuple(parts)
