"""The joint optimum is exact: the solver's tolerance of some micro-units neither breaks a budget nor loses a set."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.allocation import NO_CORE
from des.mechanism import checked_clearing
from des.mechanisms.vcg import SIDES, VCG, optimum, overspent
from des.money import MICRO
from support.books import book_of
from support.tiers import examples


def micro_book(services, clients, payments, bids, budgets, cores):
    """A book of amounts in micro-units."""
    money = (np.array(amounts) / MICRO for amounts in (payments, bids))
    offers = zip(services, clients, *money, strict=True)
    return book_of(*offers, cores=cores, budgets=np.array(budgets) / MICRO)


def test_what_is_excluded_are_the_offers_of_the_service_that_exceeds_its_budget() -> None:
    services, amounts, budgets = np.array([0, 1, 1, 1]), np.array([5, 3, 3, 3]), np.array([5, 5])
    [(row, most)] = overspent(services, amounts, budgets, np.array([True, True, True, False]))
    assert (row.tolist(), most) == ([0.0, 1.0, 1.0, 0.0], 1.0)


@pytest.mark.parametrize("side", SIDES)
def test_an_offer_that_is_a_micro_unit_over_the_budget_is_refused(side: str) -> None:
    book = micro_book([0, 1], [0, 0], [0, 1], [0, 0], [0, 0], 1)
    assert checked_clearing(VCG(side=side), book, 1).core.tolist() == [0, NO_CORE]


@pytest.mark.parametrize("side", SIDES)
def test_offers_that_use_up_the_budget_to_the_micro_unit_are_served(side: str) -> None:
    """Beside them there are others that would be worth more, and exceed it by one."""
    payments = [2_000_000, 1_000_000, 2_000_001]
    book = micro_book([0, 0, 0], [0, 1, 2], payments, [0, 0, 0], [3_000_000], 1)
    assert (checked_clearing(VCG(side=side), book, 1).core != NO_CORE).tolist() == [True, True, False]


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
    checked_clearing(VCG(side=side), book, 1)  # checks K, budgets, bids and offers
