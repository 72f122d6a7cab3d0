"""FL-Market as plug-ins: what privacy is worth to its owners, two auctions that buy it, an aggregation, and a table."""

from math import exp, sqrt

import numpy as np

import flmarket
from flmarket import NO_CORE, Menu

MOST = 2000  # the privacy loss of all of an owner's work, thousandths of epsilon
LIMITS = np.arange(575, MOST, 150)  # the middles of ten equal parts of U(0.5, 2), thousandths
SHAPES = lambda x: x * x, lambda x: 2 * sqrt(x), lambda x: 2 * x, lambda x: exp(x) - 1
CLIP = 0.02  # of updates; the scenario's clients.response.clip


@flmarket.cost("valuation")
class Valuation(flmarket.Cost):
    """An owner's valuation of its privacy budget: its type times a function of the budget, for each row of its data."""

    def __init__(self, *, limit: float = 1.0, shape: int = 0):
        self._amount = SHAPES[shape](limit)

    def amounts(self, work):
        return self._amount * work.unit * work.data_size


@flmarket.response("single-minded")
class SingleMinded(flmarket.Response):
    """Owners sell what they are asked for, and value it as their whole privacy budget."""

    def respond(self, awards):
        return np.ones(len(awards.price)) if awards.menu is None else self.best_entry(awards, awards.menu)

    def cost(self, awards, quantity):
        return np.where(quantity > 0, awards.cost, 0.0)


class PrivacyAuction(flmarket.Mechanism):
    """Buys privacy of the owners that a buyer names, within its budget. There is one buyer if owners respond."""

    keeps_budgets = True

    def __init__(self, *, each: int = 1, rate: float | None = None):
        """Take how many owners in a row have one privacy budget, and the money as a part of all valuations, if so."""
        self._each, self._rate = each, rate

    def limits(self, clients):
        """Return the privacy budget of each owner, the most epsilon that it sells, in thousandths."""
        return LIMITS[7 * (clients // self._each) % 10]

    def bought(self, bids, limit, size, budget):
        """Return who is bought from, by their places, and what each is paid, micro-units."""

    def clear(self, book):
        picked, price = np.zeros(len(book.clients), np.bool_), np.zeros(len(book.clients), np.int64)
        for m, mine in flmarket.by_service(book):
            clients, budget = book.clients[mine], int(book.budgets[m])
            if self._rate is not None:
                budget = min(budget, int(book.bids[mine].sum() * self._rate))
            owners = book.bids[mine], self.limits(clients), book.round.data_size[m, clients]
            won, paid = self.bought(*(each.tolist() for each in owners), budget)
            picked[mine[won]], price[mine[won]] = True, np.minimum(paid, book.payments[mine[won]])
        return flmarket.choose(book, picked.nonzero()[0], price)


@flmarket.mechanism("all-in")
class AllIn(PrivacyAuction):
    """The cheapest epsilon first, whoever the budget can pay at its own price per epsilon; then all of it is spent."""

    def bought(self, bids, limit, size, budget):
        sold = [one * rows for one, rows in zip(limit, size, strict=True)]  # of each row
        won, total = [], 0
        for i in sorted(range(len(bids)), key=lambda i: bids[i] / sold[i]):
            if bids[i] * (total + sold[i]) <= budget * sold[i]:
                won, total = [*won, i], total + sold[i]
        return won, [budget * sold[i] // total for i in won]

    def menu(self, book, clearing):
        taken = clearing.core != NO_CORE
        own = self.limits(book.clients[taken])[:, None] == LIMITS
        return Menu(LIMITS / MOST, np.where(own, clearing.price[taken][:, None], 0))


@flmarket.mechanism("fair-query")
class FairQuery(PrivacyAuction):
    """The k cheapest of n owners sell the largest privacy budget / (n - k), for the lower of budget / k and v_{k+1}."""

    def bought(self, bids, limit, size, budget):
        order, count, owners = sorted(range(len(bids)), key=bids.__getitem__), 0, len(bids)
        for k in range(1, owners):
            if bids[order[k - 1]] * k > budget or min(limit[i] for i in order[:k]) * (owners - k) < max(limit):
                break
            count = k
        return order[:count], [min(budget // max(count, 1), bids[order[count]])] * count

    def menu(self, book, clearing):
        taken = clearing.core != NO_CORE
        share = self.limits(book.clients).max(initial=1) / max(1, len(taken) - taken.sum())
        return Menu(np.array([share / MOST]), clearing.price[taken][:, None])


@flmarket.aggregator("opt-aggr")
class OptAggr(flmarket.Aggregator):
    """Weights that sum to 1 and make ``sum(v w^2) + sum(|w - s|)^2`` least: v is the noise's variance, s the size."""

    def aggregate(self, updates):
        sizes = updates.weights / updates.weights.sum()
        weights = optimal(sizes, np.maximum(updates.noise / CLIP, 1e-6) ** 2)
        return updates.old + sum(w * (one - updates.old) for w, one in zip(weights, updates.one_by_one(), strict=True))


def optimal(sizes, variances):
    """Return those weights: s, but from ``(a - b) / v`` to ``(a + b) / v``, where b is ``sum(|w - s|)``."""

    def weights(bias):
        def within(level):
            return np.clip(sizes, (level - bias) / variances, (level + bias) / variances)

        return within(zero(lambda level: 1 - sum(within(level).tolist()), variances.max() + bias))

    return weights(zero(lambda bias: sum(abs(weights(bias) - sizes).tolist()) - bias, 2.0))


def zero(falling, high):
    """Return where a function that falls is 0, between 0 and ``high``, by bisection."""
    step, at = high, 0.0
    for _ in range(50):
        step /= 2
        at += step * (falling(at + step) > 0)
    return at


@flmarket.policy("names-ten")
class NamesTen(flmarket.Policy):
    """Names ten owners at random, at far more than they ask; the mechanism chooses."""

    def act(self, observation):
        owners = observation.rng().choice(np.flatnonzero(observation.available), 10, replace=False)
        return flmarket.Offer(np.sort(owners), np.full(10, 1e6))


@flmarket.dataset("clouds")
def clouds():
    """Two clouds in 20 dimensions, one for each class, whose centres are 4 deviations apart."""
    random, parts = flmarket.stream(0, "papers/fl-market", "clouds"), []
    for rows in (30_000, 10_000):
        labels = np.arange(rows) % 2
        away = (2 * labels[:, None] - 1) * 2 / sqrt(20)
        parts += [(random.standard_normal((rows, 20)) + away).astype(np.float32), labels]
    return tuple(parts)
