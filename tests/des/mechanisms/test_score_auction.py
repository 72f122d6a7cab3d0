"""Score auctions: who wins, and first and second scores by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.mechanism import MECHANISMS
from des.mechanisms.score_auction import auction
from des.money import MICRO, to_micro
from flmarket.core.plugin_options import OptionsError
from support.books import book_of, prices_paid


def micro(*amounts):
    return to_micro(np.array(amounts, dtype=np.float64))


def paid(mechanism, *budgets, offers=None):
    """Return what each offer pays; None where it is refused."""
    return prices_paid(mechanism, book_of(*(offers or ONE), budgets=budgets))


ONE = [(0, 0, 6.0, 2.0), (0, 1, 5.0, 2.0), (0, 2, 2.0, 1.0), (0, 3, 3.0, 2.5)]  # scores 4, 3, 1 and .5


def test_first_scores_pay_the_bids_of_the_best_scores() -> None:
    mechanism = MECHANISMS.create("score-auction", payment="first-score")
    assert paid(mechanism, 5.0) == [2.0, 2.0, 1.0, None]
    assert paid(mechanism, 4.5) == [2.0, 2.0, None, None]


def test_second_scores_leave_winners_what_they_are_better_than_the_best_loser() -> None:
    mechanism = MECHANISMS.create("score-auction")
    assert paid(mechanism, 9.0) == [5.0, 4.0, None, None]  # the best loser has a score of 1
    assert paid(mechanism, 11.5) == [5.5, 4.5, 1.5, None]
    assert paid(mechanism, 16.0) == [6.0, 5.0, 2.0, 3.0]  # nobody loses, so all are promised their value
    assert paid(mechanism, 1.5) == [None, None, 1.5, None]  # those that ask for 2 cannot be paid


def test_a_client_serves_the_service_that_leaves_it_the_most() -> None:
    """Both pick client 0, at promises of 4 and 5."""
    assert paid(MECHANISMS.create("score-auction"), 9.0, 9.0, offers=[(0, 0, 4.0, 1.0), (1, 0, 5.0, 1.0)]) == [
        None,
        5.0,
    ]


def test_nothing_is_cleared_without_offers_or_money() -> None:
    assert paid(MECHANISMS.create("score-auction"), 0.5, offers=[(0, 0, 4.0, 1.0)]) == [None]


def test_an_unknown_payment_is_named() -> None:
    with pytest.raises(OptionsError) as caught:
        MECHANISMS.create("score-auction", payment="third")
    assert str(caught.value) == "mechanism 'score-auction': payment must be first-score or second-score, not 'third'"


# The auction itself, which the policy `fmore` plays, too


def test_second_scores_are_paid_up_to_the_best_losing_score() -> None:
    """Scores 4, 3, 1 and -1. Two winners: 6 - 1 and 5 - 1, together 9. Three: 7 + 6 + 3 = 16."""
    value, asked = micro(6, 5, 2, 1), micro(2, 2, 1, 2)
    for budget, paid in ((9, [5, 4]), (15.999999, [5, 4]), (16, [7, 6, 3]), (8.999999, [3])):
        won, prices = auction(value, asked, to_micro(float(budget)), 3, second=True)
        assert prices.tolist() == [price * MICRO for price in paid]
        assert won.tolist() == list(range(len(paid)))
    assert auction(value, asked, to_micro(2.5), 3, second=True)[1].tolist() == [2_500_000]  # all that there is
    assert auction(value, asked, to_micro(7.0), None, second=True)[1].tolist() == asked.tolist()  # nobody loses


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8),
    st.integers(0, 120),
    st.integers(0, 7),
    st.integers(0, 60),
)
def test_no_other_bid_earns_a_client_more_at_second_scores(pairs, budget, who, other) -> None:
    """For one service whose values are fixed, a client's cost is its best bid, also where the budget binds.

    As long as a winner wins, its bid moves neither the best losing score nor how many are paid. A loser that bids
    itself in wins among those whose scores are at least its true one, and is promised no more than its cost.
    """
    pairs = [(max(cost, value), cost) for cost, value in pairs]
    if who >= len(pairs):
        return
    value, cost = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    book = [(0, client, float(worth), 0.0) for client, worth in enumerate(value.tolist())]

    def gain(bid: int) -> float:
        asked = cost.copy()
        asked[who] = bid
        # The service names those that are worth what they ask.
        offers = [(*offer[:3], float(ask)) for offer, ask in zip(book, asked, strict=True) if ask <= offer[2]]
        if not any(offer[1] == who for offer in offers):
            return 0.0
        prices = paid(MECHANISMS.create("score-auction"), float(budget), offers=offers)
        [price] = [price for offer, price in zip(offers, prices, strict=True) if offer[1] == who]
        return 0.0 if price is None else price - float(cost[who])

    assert gain(other) <= gain(int(cost[who]))
