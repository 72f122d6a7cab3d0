"""The numbers of clients are names, and who asks more is served no more: what holds of all mechanisms."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.allocation import tie_order_of
from des.mechanism import MECHANISMS, Book, checked_clearing
from fl.arithmetic.draws import draw_key
from fl.arrays import FloatArray, IntArray
from support.tiers import examples

OPTIONS = [
    *((name, {}) for name in MECHANISMS.names() if name != "posted-price"),
    ("posted-price", {"price_per_sample": 0.01}),
    ("score-auction", {"payment": "first-score"}),
    pytest.param("vcg", {"side": "services"}, marks=pytest.mark.slow),
]
MILLION = 1_000_000


@st.composite
def books(draw: st.DrawFn) -> Book:
    """Offers of few different values and bids, so that ties are common, at budgets that some of them exhaust."""
    services, clients = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    pairs = draw(
        st.lists(st.tuples(st.integers(0, services - 1), st.integers(0, clients - 1)), unique=True, min_size=1)
    )
    m, c = np.array(pairs, dtype=np.int64).T
    bids = np.array(draw(st.lists(st.sampled_from([1, 2]), min_size=len(m), max_size=len(m)))) * MILLION
    more = np.array(draw(st.lists(st.sampled_from([0, 1, 1]), min_size=len(m), max_size=len(m)))) * MILLION
    budgets = np.array(draw(st.lists(st.integers(2, 12), min_size=services, max_size=services))) * MILLION
    ties = partial(tie_order_of, draw_key(draw(st.integers(0, 99)), "ties"), 1, services)
    return Book(m, c, bids + more, bids, bids, budgets, draw(st.integers(1, 2)), ties)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
@examples(40)
@given(data=st.data(), book=books())
def test_numbering_clients_otherwise_changes_nothing_but_names(name: str, options: dict, data, book: Book) -> None:
    if not MECHANISMS.create(name, **options).keeps_budgets:
        spent = np.bincount(book.services, book.payments, len(book.budgets)).astype(np.int64)
        book = replace(book, budgets=np.maximum(book.budgets, spent))
    number = np.array(data.draw(st.permutations(range(7))))  # the new name of each client
    old = np.argsort(number)

    def ties(clients: IntArray) -> FloatArray:
        return book.tie_order(old[clients])

    order = np.array(data.draw(st.permutations(range(len(book.clients)))))  # offers in another order, too
    if name == "vcg":  # which divides what is left of a price, single micro-units, in the order of the offers
        order = np.arange(len(order))
    parts = {it: getattr(book, it)[order] for it in ("services", "payments", "bids", "asks")}
    other = replace(book, clients=number[book.clients[order]], tie_order=ties, **parts)
    one, two = (checked_clearing(MECHANISMS.create(name, **options), it, 1) for it in (book, other))
    assert np.array_equal(one.core[order] >= 0, two.core >= 0)
    served = two.core >= 0
    assert np.array_equal(one.price[order][served], two.price[served])


PAYS_BIDS = "first-score", "services"  # by their published rules: a winner gets its bid, with VCG's services as a part


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
@examples(40)
@given(book=books(), client=st.integers(0, 6), by=st.integers(1, MILLION))
def test_who_asks_more_is_served_no_more_and_gets_no_better_price(
    name: str, options: dict, book: Book, client: int, by: int
) -> None:
    """No reserve, score or scale moves with what a client reports: as long as it serves, its bid is a floor alone."""
    if not MECHANISMS.create(name, **options).keeps_budgets:
        spent = np.bincount(book.services, book.payments, len(book.budgets)).astype(np.int64)
        book = replace(book, budgets=np.maximum(book.budgets, spent))
    own = book.clients == client
    bids = np.where(own, np.minimum(book.bids + by, book.payments), book.bids)
    one, two = (
        checked_clearing(MECHANISMS.create(name, **options), it, 1)
        for it in (book, replace(book, bids=bids, asks=bids))
    )
    before, after = own & (one.core >= 0), own & (two.core >= 0)
    assert after.sum() <= before.sum()
    both = before & after
    if name == "vcg" and not options:  # Clarke pays a client for all its offers together, to some micro-units
        gained = ((it.price - book.bids)[own & (it.core >= 0)].sum() for it in (two, one))
        assert next(gained) <= next(gained) + 20
    elif not {*options.values()} & {*PAYS_BIDS}:
        assert two.price[both].tolist() == np.maximum(one.price, bids)[both].tolist()
