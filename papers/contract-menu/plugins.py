"""Menus of contracts for clients whose type is private: the optimal one, a broken one, and that of full information."""

import numpy as np

from flmarket import Asks, Clearing, Mechanism, Menu, allocate, mechanism

MICRO = 1_000_000
KINDS = "screening", "first-best", "informed"


def contracts(costs, shares, value):
    """Return the quantities and payments of the optimal menu, lowest cost first.

    A quantity costs a type ``costs * quantity^2``, and is worth ``value`` times itself. To a type's cost is added what
    its contract lets the cheaper types keep: ``F(below) / share * (costs - the next lower cost)``. Each is paid its
    cost, and what it would keep of the contract of the next higher type.
    """
    costs, shares = np.asarray(costs, dtype=float), np.asarray(shares, dtype=float) / np.sum(shares)
    below = np.cumsum(shares) - shares
    virtual = costs + below / shares * np.diff(costs, prepend=costs[0])
    quantity = value / (2 * virtual)
    rent = np.append(np.cumsum((np.diff(costs) * quantity[1:] ** 2)[::-1])[::-1], 0.0)
    return quantity, costs * quantity**2 + rent


@mechanism("contract-menu")
class ContractMenu(Mechanism):
    """Every client that is awarded work chooses a contract, or none.

    ``kind`` is ``screening``, the optimal menu where types are private; ``first-best``, each type's best contract at
    its cost, for all to choose; or ``informed``, where each client is paid for its own type's best contract only.
    """

    def __init__(self, *, kind="screening", value=4.0, costs=(2.0, 3.0, 5.0), shares=(1.0, 1.0, 1.0)):
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}")
        self.kind, self.costs = kind, np.asarray(costs, dtype=float)
        if kind == "screening":
            self.quantity, payment = contracts(costs, shares, value)
        else:
            self.quantity = value / (2 * self.costs)
            payment = self.costs * self.quantity**2
        # A few micro-units more for the larger contracts, so that rounding does not decide where a type does not care.
        self.payment = np.ceil(payment * MICRO).astype(np.int64) + 3 * np.arange(len(costs), 0, -1)

    def ask(self, bids, data_size):
        return Asks(np.maximum(bids, self.payment.max()))

    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.capacity, book.tie_order)
        return Clearing(core, book.payments)

    def menu(self, book, clearing):
        if self.kind != "informed":
            return Menu(self.quantity, self.payment)
        types = np.abs(book.bids[clearing.core >= 0, None] / MICRO - self.costs).argmin(axis=1)
        return Menu(self.quantity, np.where(types[:, None] == np.arange(len(self.costs)), self.payment, 0))
