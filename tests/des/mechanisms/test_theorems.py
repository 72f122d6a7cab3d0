"""Theorems about mechanisms, whatever the offers: what the literature proves of one, and what holds of all.

The numbers of clients are names, who asks more is served no more, and a cost is the best bid where a rule promises it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import des.mechanism
from des.allocation import NO_CORE, tie_order_of
from des.mechanism import FIRST, MECHANISMS, Book, beginnings, clearing_of
from des.mechanisms.fair_queue import FairQueue
from des.mechanisms.score_auction import auction
from des.mechanisms.vcg import SIDES, VCG, budget_cuts, division, optimum
from des.money import MICRO, to_micro
from fl.arithmetic.draws import draw_key
from fl.arrays import FloatArray, IntArray
from support.books import book_of, prices_paid
from support.tiers import examples

OPTIONS = [
    *((name, {}) for name in MECHANISMS.names() if name not in ("posted-price", "scheduler")),
    ("posted-price", {"price_per_sample": 0.01}),
    ("scheduler", {"order": "random"}),
    ("score-auction", {"payment": "first-score"}),
    pytest.param("vcg", {"side": "services"}, marks=pytest.mark.slow),
]


@st.composite
def books(draw: st.DrawFn) -> Book:
    """Offers of few different values and bids, so that ties are common, at budgets that some of them exhaust."""
    services, clients = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    pairs = draw(
        st.lists(st.tuples(st.integers(0, services - 1), st.integers(0, clients - 1)), unique=True, min_size=1)
    )
    m, c = np.array(pairs, dtype=np.int64).T
    bids = np.array(draw(st.lists(st.sampled_from([1, 2]), min_size=len(m), max_size=len(m)))) * MICRO
    more = np.array(draw(st.lists(st.sampled_from([0, 1, 1]), min_size=len(m), max_size=len(m)))) * MICRO
    budgets = np.array(draw(st.lists(st.integers(2, 12), min_size=services, max_size=services))) * MICRO
    ties = partial(tie_order_of, draw_key(draw(st.integers(0, 99)), "ties"), 1, services)
    return Book(m, c, bids + more, bids, bids, budgets, draw(st.integers(1, 2)), ties)


def affordable(name: str, options: dict, book: Book) -> Book:
    """The book, with budgets that offers keep unless the mechanism does."""
    if MECHANISMS.create(name, **options).keeps_budgets:
        return book
    spent = np.bincount(book.services, book.payments, len(book.budgets)).astype(np.int64)
    return replace(book, budgets=np.maximum(book.budgets, spent))


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
@examples(40)
@given(data=st.data(), book=books())
def test_numbering_clients_otherwise_changes_nothing_but_names(name: str, options: dict, data, book: Book) -> None:
    """Nor does the order of offers; and who is refused without regard to budgets finds all cores of the client busy."""
    book = affordable(name, options, book)
    number = np.array(data.draw(st.permutations(range(7))))  # the new name of each client
    old = np.argsort(number)

    def ties(clients: IntArray) -> FloatArray:
        return book.tie_order(old[clients])

    order = np.array(data.draw(st.permutations(range(len(book.clients)))))  # offers in another order, too
    if name == "vcg":  # which divides what is left of a price, single micro-units, in the order of the offers
        order = np.arange(len(order))
    parts = {column: getattr(book, column)[order] for column in ("services", "payments", "bids", "asks")}
    other = replace(book, clients=number[book.clients[order]], tie_order=ties, **parts)
    one, two = (clearing_of(MECHANISMS.create(name, **options), each, 1) for each in (book, other))
    assert np.array_equal(one.core[order] >= 0, two.core >= 0)
    served = two.core >= 0
    assert np.array_equal(one.price[order][served], two.price[served])
    if not MECHANISMS.create(name, **options).keeps_budgets:
        busy = np.bincount(book.clients, one.core != NO_CORE, minlength=7)
        assert (busy[book.clients[one.core == NO_CORE]] == book.cores).all()


PAYS_BIDS = "first-score", "services"  # by their published rules: a winner gets its bid, with VCG's services as a part


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
@examples(40)
@given(book=books(), client=st.integers(0, 6), by=st.integers(1, MICRO))
def test_who_asks_more_is_served_no_more_and_gets_no_better_price(
    name: str, options: dict, book: Book, client: int, by: int
) -> None:
    """No reserve, score or scale moves with what a client reports: as long as it serves, its bid is a floor alone."""
    book = affordable(name, options, book)
    own = book.clients == client
    bids = np.where(own, np.minimum(book.bids + by, book.payments), book.bids)
    one, two = (
        clearing_of(MECHANISMS.create(name, **options), each, 1) for each in (book, replace(book, bids=bids, asks=bids))
    )
    before, after = own & (one.core >= 0), own & (two.core >= 0)
    assert after.sum() <= before.sum()
    both = before & after
    if name == "vcg" and not options:  # Clarke pays a client for all its offers together, to some micro-units
        gained = ((each.price - book.bids)[own & (each.core >= 0)].sum() for each in (two, one))
        assert next(gained) <= next(gained) + 20
    elif not {*options.values()} & {*PAYS_BIDS}:
        assert two.price[both].tolist() == np.maximum(one.price, bids)[both].tolist()


@pytest.mark.parametrize("name", ["proportional-share", "score-auction"])
@given(
    pairs=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8),
    budget=st.integers(0, 120),
    who=st.integers(0, 7),
    other=st.integers(0, 60),
)
def test_no_other_bid_earns_a_client_more(name: str, pairs, budget: int, who: int, other: int) -> None:
    """For one service whose values are fixed, a client's cost is its best bid, also where the budget binds.

    Proportional share: Singer's theorem. Second scores: as long as a winner wins, its bid moves neither the best losing
    score nor how many are paid. A loser that bids itself in wins among those whose scores are at least its true one,
    and is promised no more than its cost.
    """
    who %= len(pairs)
    values, costs = [max(pair) for pair in pairs], [min(pair) for pair in pairs]

    def gain(bid: int) -> float:
        bids = [*costs[:who], bid, *costs[who + 1 :]]
        # The service names those that are worth what they ask.
        offers = [(0, client, worth, bids[client]) for client, worth in enumerate(values) if bids[client] <= worth]
        paid = prices_paid(MECHANISMS.create(name), book_of(*offers, budgets=(budget,)))
        return sum(price - costs[who] for offer, price in zip(offers, paid, strict=True) if offer[1] == who and price)

    assert gain(other) <= gain(costs[who])


@pytest.mark.parametrize("mechanism", ["proportional-share", "score-auction"])
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 9), st.integers(0, 9)), max_size=40),
    st.lists(st.integers(0, 60), min_size=3, max_size=3),
)
def test_looking_at_the_best_offers_first_changes_nothing(mechanism, rows, budgets) -> None:
    offers = {(m, client): (m, client, float(max(pair)), float(min(pair))) for m, client, *pair in rows}
    book = book_of(*offers.values(), budgets=[float(budget) for budget in budgets])
    with pytest.MonkeyPatch.context() as patch:
        prices = []
        for first in (1, 1000):
            patch.setattr(des.mechanism, "FIRST", first)
            prices.append(prices_paid(MECHANISMS.create(mechanism), book))
    assert prices[0] == prices[1]


@pytest.mark.parametrize("size", [0, 1, FIRST, FIRST + 1, 10_000])
@pytest.mark.parametrize("values", [1, 16, 10**9])
def test_beginnings_are_those_of_the_stable_order(size: int, values: int) -> None:
    keys = np.random.default_rng(size).integers(0, values, size)
    parts = list(beginnings(keys))
    order = keys.argsort(kind="stable").tolist()
    assert [part.tolist() for part in parts] == [order[: len(part)] for part in parts]
    assert len(parts[-1]) == size
    assert all(len(part) > FIRST for part in parts[:-1])


# Score auctions, which the policy `fmore` plays, too


def test_second_scores_are_paid_up_to_the_best_losing_score() -> None:
    """Scores 4, 3, 1 and -1. Two winners: 6 - 1 and 5 - 1, together 9. Three: 7 + 6 + 3 = 16."""
    value, asked = np.array([6, 5, 2, 1]) * MICRO, np.array([2, 2, 1, 2]) * MICRO
    for budget, paid in ((9, [5, 4]), (15.999999, [5, 4]), (16, [7, 6, 3]), (8.999999, [3])):
        won, prices = auction(value, asked, to_micro(float(budget)), 3, second=True)
        assert prices.tolist() == [price * MICRO for price in paid]
        assert won.tolist() == list(range(len(paid)))
    assert auction(value, asked, to_micro(2.5), 3, second=True)[1].tolist() == [2_500_000]  # all that there is
    assert auction(value, asked, to_micro(7.0), None, second=True)[1].tolist() == asked.tolist()  # nobody loses


# Fair queues


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), unique=True, max_size=12), max_size=10))
def test_queues_lose_nothing(rounds) -> None:
    """The clients owed to services in a round add up to those served: queues only grow by rounding down and the cut."""
    mechanism = FairQueue(weight=0.1)
    for offers in rounds:
        book = book_of(*((m, c, 1.0 + m) for m, c in offers))
        before = mechanism.state()["queues"] or [0, 0, 0]
        clearing = clearing_of(mechanism, book, 1)
        mechanism.close(book, clearing)
        won = clearing.core != NO_CORE
        for m, after in enumerate(mechanism.state()["queues"] or [0, 0, 0]):
            of_service = np.array([who == m for who, _ in offers], dtype=np.bool_)
            owed = of_service.sum() * won.sum() / len(offers) if offers else 0
            assert after == pytest.approx(max(0, before[m] + MICRO * (owed - (won & of_service).sum())), abs=1)


# VCG: the solver's tolerance of some micro-units neither breaks a budget nor loses a set


def micro_book(
    services: Sequence[int], clients: Sequence[int], payments: IntArray, bids: IntArray, budgets: IntArray, cores: int
) -> Book:
    """A book of amounts in micro-units."""
    offers = zip(services, clients, payments / MICRO, bids / MICRO, strict=True)
    return book_of(*offers, cores=cores, budgets=budgets / MICRO)


def test_what_is_excluded_are_the_offers_of_the_service_that_exceeds_its_budget() -> None:
    services, amounts, budgets = np.array([0, 1, 1, 1]), np.array([5, 3, 3, 3]), np.array([5, 5])
    [(row, most)] = budget_cuts(services, amounts, budgets, np.array([True, True, True, False]))
    assert (row.tolist(), most) == ([0.0, 1.0, 1.0, 0.0], 1.0)


@pytest.mark.parametrize("side", SIDES)
def test_an_offer_that_is_a_micro_unit_over_the_budget_is_refused(side: str) -> None:
    book = micro_book([0, 1], [0, 0], np.array([0, 1]), np.zeros(2), np.zeros(2), 1)
    assert clearing_of(VCG(side=side), book, 1).core.tolist() == [0, NO_CORE]


@pytest.mark.parametrize("side", SIDES)
def test_offers_that_use_up_the_budget_to_the_micro_unit_are_served(side: str) -> None:
    """Beside them there are others that would be worth more, and exceed it by one."""
    payments = np.array([2_000_000, 1_000_000, 2_000_001])
    book = micro_book([0, 0, 0], [0, 1, 2], payments, np.zeros(3), np.array([3_000_000]), 1)
    assert (clearing_of(VCG(side=side), book, 1).core != NO_CORE).tolist() == [True, True, False]


amounts = st.one_of(st.integers(0, 5_000_000), st.integers(0, 4), st.sampled_from([999_999, 1_000_000, 1_000_001]))


@examples(25)
@given(data=st.data(), side=st.sampled_from(SIDES))
def test_no_other_set_has_a_higher_joint_surplus(data: st.DataObject, side: str) -> None:
    """Compared with all sets, of at most eight offers."""
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=8, unique=True))
    services, clients = np.array(pairs).T
    bids = np.array([data.draw(amounts) for _ in pairs])
    payments = bids + np.array([data.draw(amounts) for _ in pairs])
    budgets = np.array(data.draw(st.lists(st.integers(0, 9_000_000) | amounts, min_size=3, max_size=3)))
    book = micro_book(services, clients, payments, bids, budgets, data.draw(st.integers(1, 2)))
    best = 0
    for choice in product([False, True], repeat=len(pairs)):
        chosen = np.array(choice)
        spent = np.bincount(services[chosen], payments[chosen], 3)
        if (spent <= budgets).all() and (np.bincount(clients[chosen], minlength=3) <= book.cores).all():
            best = max(best, int((payments - bids)[chosen].sum()))
    assert abs(optimum(book, payments - bids, np.ones(len(pairs), np.bool_)) - best) <= 1  # a micro-unit
    clearing_of(VCG(side=side), book, 1)  # checks K, budgets, bids and offers


@given(st.lists(st.integers(0, 10**9), max_size=9), st.floats(0, 1))
def test_an_amount_is_shared_without_loss(shares, part) -> None:
    amount = int(sum(shares) * part)
    parts = division(amount, np.array(shares, dtype=np.int64))
    assert parts.sum() == amount
    assert (parts >= 0).all()
    assert (parts <= np.array(shares, dtype=np.int64)).all()
