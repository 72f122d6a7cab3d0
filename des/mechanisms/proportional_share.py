"""Budget-feasible procurement: each service buys the best value for its budget, at threshold prices (Singer 2010)."""

import numpy as np

from des.mechanism import Book, Clearing, Mechanism, beginnings, by_service, choose
from des.money import Micro, MicroArray
from fl.arrays import BoolArray

__all__ = ["ProportionalShare"]


class ProportionalShare(Mechanism):
    """A service names what clients are worth to it; the mechanism picks the best value for its budget.

    For each service the clients that it names are ranked by bid per value. The first k are picked, as many as can each
    be paid a share of the budget in proportion to their value: the bid of the last is at most ``B * v_k / (v_1 + ... +
    v_k)``. Each is promised the highest bid at which it would still be picked: ``v * min(B / (v_1 + ... + v_k),
    bid_{k+1} / v_{k+1})``, and at most its value. (That is the proportional-share rule of Singer, "Budget feasible
    mechanisms", FOCS 2010, without the comparison with the best single client on which his approximation rests, so that
    none is claimed; the cap at the value is ours.) A client that is picked by more than K services serves those that
    leave it the most above its bid; what the others promised lapses.

    What a client is promised does not depend on its bid, and it serves the best K of what it is promised; so its cost
    is its best bid, as long as services name clients and values by other things than bids. Values may add up to more
    than the budget, promises never do.

    Fidelity to Singer (2010), the proportional-share rule: checked:
    tests/des/mechanisms/test_tables.py::test_every_round_is_cleared_as_it_was_worked_out_by_hand,
    tests/des/mechanisms/test_theorems.py::test_no_other_bid_earns_a_client_more,
    tests/des/mechanisms/test_sources.py::test_a_winner_is_promised_singer_s_threshold_or_its_value.

    Fidelity to Singer (2010), where the budget is above a winner's value: off by 9 of the 12 that a winner which is
    worth 3 and is alone would get, as no more than the value is promised:
    tests/des/mechanisms/test_sources.py::test_singer_s_threshold_is_cut_at_what_the_winner_is_worth.

    Fidelity to Singer (2010), the approximation: interpretation: the comparison with the best single client, on which
    it rests, is left out, so that none is claimed.

    Fidelity to Singer (2010), with several buyers: interpretation: a client that several services pick serves those
    that leave it the most.
    """

    summary = "each service buys the best value per price within its budget, at threshold prices (Singer)"
    keeps_budgets = True

    def clear(self, book: Book) -> Clearing:
        picked = np.zeros(len(book.clients), dtype=np.bool_)
        price = np.zeros(len(book.clients), dtype=np.int64)
        for m, mine in by_service(book):
            picked[mine], price[mine] = procure(book.asks[mine], book.payments[mine], int(book.budgets[m]))
        return choose(book, picked.nonzero()[0], price)


def procure(
    bids: MicroArray,  # [n] what each client asks, micro-units
    values: MicroArray,  # [n] what each is worth to the service, at least the bid, micro-units
    budget: Micro,  # B, micro-units
) -> tuple[BoolArray, MicroArray]:
    """Return who is picked for one service, and what each is promised."""
    picked, price = np.zeros(len(bids), np.bool_), np.zeros(len(bids), np.int64)
    worthless = values == 0  # and asks for nothing
    picked[worthless] = True
    priced = (~worthless).nonzero()[0]
    low = 0
    for first in beginnings(bids[priced] / values[priced]):
        order = priced[first]
        ranked, worth, sums = bids[order], values[order], np.cumsum(values[order])
        low = _count_within(ranked, worth, sums, budget)
        if low < len(order):
            break
    if not low:
        return picked, price
    above, below = budget, int(sums[low - 1])  # the price of a unit of value, as a fraction
    if low < len(order) and int(ranked[low]) * below < above * int(worth[low]):
        above, below = int(ranked[low]), int(worth[low])
    picked[order[:low]] = True
    price[order[:low]] = [min(value, value * above // below) for value in worth[:low].tolist()]
    return picked, price


def _count_within(bids: MicroArray, worth: MicroArray, sums: MicroArray, budget: Micro) -> int:
    """Return how many of the first can each be paid their share of the budget."""
    # Whether the k-th fits only ever changes from true to false, because its bid per value rises and its share falls.
    # In Python's integers: products of two amounts of money exceed 64 bits.
    low, high = 0, len(bids)
    while low < high:
        middle = (low + high) // 2
        if int(bids[middle]) * int(sums[middle]) <= budget * int(worth[middle]):
            low = middle + 1
        else:
            high = middle
    return low
