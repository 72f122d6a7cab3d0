"""BFM-SWM as a mechanism: a descending clock over the clients that a service names, for values that add up."""

from math import sqrt

import numpy as np

from flmarket import Mechanism, by_service, choose, mechanism


@mechanism("bfm-swm")
class BFMSWM(Mechanism):
    """Each service lowers its prices client by client, round by round, and buys the set of the best value less price.

    Args:
        alpha: by what the threshold of a set's value less price grows from one round to the next.
        beta: a price is at most the client's value, divided by this and the threshold per unit of the budget.
        eps: the first threshold, as a part of the budget.
    """

    summary = "each service lowers prices by the clock BFM-SWM, and buys the best value less price within its budget"
    keeps_budgets = True

    def __init__(self, *, alpha: float = 1 + sqrt(6) / 2, beta: float = 3, eps: float = 0.001):
        if not (alpha > 1 and beta > 1 and 0 < eps < 1):
            raise ValueError("alpha and beta must be above 1, eps above 0 and below 1")
        self.alpha, self.beta, self.eps = alpha, beta, eps

    def clear(self, book):
        price = np.zeros(len(book.clients), np.int64)
        picked = np.zeros(len(book.clients), np.bool_)
        for service, mine in by_service(book):  # in the order of draws: clients' numbers and bids decide nothing
            values, bids = book.payments[mine].tolist(), book.bids[mine].tolist()
            won, paid = self.bought(values, bids, int(book.budgets[service]))
            picked[mine[won]], price[mine[won]] = True, paid
        return choose(book, np.flatnonzero(picked), price)

    def bought(self, values, bids, budget):
        """Return who is bought from, by their places, and what each is paid; all money in micro-units."""
        price = [budget] * len(values)
        active = [i for i, bid in enumerate(bids) if bid <= budget] if budget else []
        threshold, chosen, alone = self.eps * budget, [], []
        while True:  # Algorithm 1
            last, chosen, surplus = chosen, [], 0
            for i in [i for i in active if i not in last and i not in alone]:
                price[i] = min(price[i], int(values[i] / (self.beta + threshold / budget)))
                if bids[i] > price[i]:
                    active.remove(i)  # for good
                elif surplus + values[i] - price[i] > threshold:
                    alone = [i]
                    break
                else:
                    chosen.append(i)
                    surplus += values[i] - price[i]
            if {*active} <= {*last, *chosen, *alone}:
                best = max((last, chosen, alone), key=lambda those: sum(values[i] - price[i] for i in those))
                return best, [price[i] for i in best]
            threshold *= self.alpha
