"""Fair queues: who was served less than its share is served first, however little it offers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.allocation import NO_CORE
from des.mechanism import MECHANISMS, checked_clearing
from des.mechanisms.fair_queue import FairQueue
from des.money import MICRO
from flmarket.core.plugin_options import OptionsError
from support.books import book_of

TWO = (100.0, 100.0)


def played(mechanism, book):
    """Whether each offer wins."""
    clearing = checked_clearing(mechanism, book, 1)
    mechanism.close(book, clearing)
    return (clearing.core != NO_CORE).tolist()


def test_the_first_round_goes_to_the_highest_offers_at_their_price() -> None:
    book = book_of((0, 0, 3.0), (1, 0, 2.0), budgets=TWO)
    mechanism = MECHANISMS.create("fair-queue")
    assert checked_clearing(mechanism, book, 1).price.tolist() == [3 * MICRO, 2 * MICRO]
    assert played(mechanism, book) == [True, False]


def test_a_backlog_outweighs_money_by_its_weight() -> None:
    """Each is owed half a client a round. After round 1 the second has a queue of .5, after round 2 of 1."""
    mechanism = FairQueue(weight=0.6)
    book = book_of((0, 0, 3.0), (1, 0, 2.0), budgets=TWO)
    assert played(mechanism, book) == [True, False]
    assert mechanism.state() == {"queues": [0, 500_000]}
    assert played(mechanism, book) == [True, False]  # 1.8 against .5 + 1.2
    assert mechanism.state() == {"queues": [0, 1_000_000]}
    assert played(mechanism, book) == [False, True]  # 1.8 against 1 + 1.2
    assert mechanism.state() == {"queues": [500_000, 500_000]}


def test_without_weight_the_longest_queue_goes_first() -> None:
    mechanism = FairQueue(weight=0)
    book = book_of((0, 0, 9.0), (1, 0, 0.0), budgets=TWO)
    assert [played(mechanism, book)[0] for _ in range(4)] == [True, False, True, False]


def test_queues_are_kept_and_taken_back() -> None:
    mechanism, again = FairQueue(), FairQueue()
    assert again.state() == {"queues": None}
    again.restore({"queues": None})
    played(mechanism, book_of((0, 0, 3.0), (1, 0, 2.0), budgets=TWO))
    again.restore(mechanism.state())
    assert again.state() == mechanism.state() == {"queues": [0, 500_000]}


def test_a_round_without_offers_changes_no_queue() -> None:
    mechanism = FairQueue()
    mechanism.restore({"queues": [1, 2]})
    assert played(mechanism, book_of(budgets=TWO)) == []
    assert mechanism.state() == {"queues": [1, 2]}


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), unique=True, max_size=12), max_size=10))
def test_queues_lose_nothing(rounds) -> None:
    """The clients owed to services in a round add up to those served: queues only grow by rounding down and the cut."""
    mechanism = FairQueue(weight=0.1)
    for offers in rounds:
        book = book_of(*((m, c, 1.0 + m) for m, c in offers))
        before = mechanism.state()["queues"] or [0, 0, 0]
        won = played(mechanism, book)
        after = mechanism.state()["queues"] or [0, 0, 0]
        for m in range(3):
            served = sum(win for win, (who, _) in zip(won, offers, strict=True) if who == m)
            wanted = sum(who == m for who, _ in offers)
            owed = wanted * sum(won) / len(offers) if offers else 0
            assert after[m] == pytest.approx(max(0, before[m] + MICRO * (owed - served)), abs=1)


@pytest.mark.parametrize("weight", [-1, 1001, float("nan"), "much", True])
def test_impossible_weights(weight) -> None:
    with pytest.raises(OptionsError, match="weight must be a number from 0 to 1000"):
        MECHANISMS.create("fair-queue", weight=weight)
