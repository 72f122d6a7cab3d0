"""Score auctions: each service buys the clients whose value less price is highest, at first or second scores."""

import numpy as np

from des.mechanism import Book, Clearing, Mechanism, beginnings, by_service, choose
from des.money import Micro, MicroArray
from flmarket.core.plugin_options import one_of

__all__ = ["ScoreAuction"]

PAYMENTS = ("first-score", "second-score")


class ScoreAuction(Mechanism):
    """A service names what clients are worth to it; the highest scores, value less bid, win as far as its budget goes.

    After Zeng, Zhang, Wang and Chu, "FMore: An incentive scheme of multi-dimensional auction for federated learning in
    MEC", ICDCS 2020, whose scoring rule is s(q) - p. What a service offers for a client stands for s(q). With
    ``first-score`` a winner is promised its bid; with ``second-score`` the price at which its score would equal the
    best losing one (Che, "Design competition through multidimensional auctions", RAND Journal of Economics 24, 1993),
    or 0 if none loses, so that it is promised its value. A client that is picked by more than K services serves those
    that leave it the most above its bid; what the others promised lapses.

    FMore fixes the number of winners and has one buyer without a budget; the budget and the choice among several
    promises are ours.

    Fidelity to Che (1993): checked:
    tests/des/mechanisms/test_tables.py::test_every_round_is_cleared_as_it_was_worked_out_by_hand,
    tests/des/mechanisms/test_theorems.py::test_second_scores_are_paid_up_to_the_best_losing_score,
    tests/des/mechanisms/test_sources.py::test_che_s_equilibrium_of_first_scores_is_a_best_response,
    tests/des/mechanisms/test_sources.py::test_at_second_scores_the_cost_is_a_best_response,
    tests/des/mechanisms/test_sources.py::test_first_and_second_scores_cost_the_buyer_the_same_in_equilibrium.

    Fidelity to Zeng et al. (FMore, 2020): interpretation: the offer stands for s(q), a budget sets the number of
    winners, and a client chooses among several promises.
    """

    summary = (
        "each service buys the highest value less price within its budget, at first or second scores (after FMore)"
    )
    keeps_budgets = True

    def __init__(
        self,
        *,
        payment: str = "second-score",  # ``first-score`` or ``second-score``
    ) -> None:
        self._second = one_of("payment", payment, PAYMENTS) == PAYMENTS[1]

    def clear(self, book: Book) -> Clearing:
        price, score = np.zeros(len(book.clients), dtype=np.int64), book.payments - book.asks
        picked = []
        for m, offers in by_service(book):
            budget = int(book.budgets[m])
            mine = offers[book.asks[offers] <= budget]
            keys = -score[mine]
            # At first scores, who no longer fits is passed over, so that all are looked at.
            for first in beginnings(keys) if self._second else [keys.argsort(kind="stable")]:
                best, whole = mine[first], len(first) == len(mine)
                # At second scores, last comes an empty one, which wins nothing: 0.
                empty = np.zeros(int(self._second and whole), dtype=np.int64)
                value, bids = (np.concatenate([each[best], empty]) for each in (book.payments, book.asks))
                won, paid = auction(value, bids, budget, len(best), second=self._second) if len(best) else (best, best)
                if whole or len(won) < len(best) - 1:  # the next one sets the price
                    break
            picked.append(best[won])
            price[best[won]] = paid
        chosen = np.sort(np.concatenate(picked)) if picked else np.empty(0, dtype=np.int64)
        return choose(book, chosen, price)


def auction(
    value: MicroArray,  # [n] s(q), micro-units, in the order of scores, the best first
    bids: MicroArray,  # [n] the bids, each within the budget, micro-units
    budget: Micro,  # micro-units
    winners: int | None,  # the most that win; None for any number
    *,
    second: bool,  # whether second scores are paid
) -> tuple[MicroArray, MicroArray]:
    """Return who wins, as places in the order of scores, and what each is paid, micro-units.

    At first scores, a client that no longer fits into the budget is passed over. At second scores the winners are the
    first k with the largest k whose payments fit: who is passed over would set the others' payments.
    """
    most = len(value) if winners is None else min(winners, len(value))
    if second:
        score = value - bids
        k = np.arange(1, min(most, len(value) - 1) + 1)  # with so many winners the next one loses
        fits = k[np.cumsum(value)[k - 1] - k * score[k] <= budget]
        if most == len(value) and int(bids.sum()) <= budget:
            return np.arange(most), bids  # without a losing score there is nothing to pay more than the bid for
        if len(fits):
            return np.arange(fits[-1]), value[: fits[-1]] - score[fits[-1]]
        return np.arange(1), np.minimum(value[:1] - score[1], budget)
    won: list[int] = []
    left = budget
    for place, price in enumerate(bids.tolist()):
        if price <= left and len(won) < most:
            won.append(place)
            left -= price
    at = np.array(won, dtype=np.int64)
    return at, bids[at]
