"""Over-budget actions: the projection's rule, and that what comes out is always an offer the market takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.money import MICRO, to_micro
from des.offer_checks import check_offer
from learning.environments.actions import project

BIDS = np.array([2.0, 3.0, 4.0, 0.0])


def offered(select, payment, budget, bids=BIDS):
    offer = project(np.array(select, dtype=np.bool_), np.array(payment, dtype=np.float64), bids, budget)
    return dict(zip(offer.clients.tolist(), offer.payments.tolist(), strict=True))


def test_the_highest_payment_in_units_of_the_bid_comes_first():
    assert offered([1, 1, 1, 0], [1.0, 1.0, 1.1, 1.0], 6.5) == {2: 4.4, 0: 2.0}


def test_of_equal_payments_the_lower_bid_comes_first_and_then_the_lower_index():
    assert list(offered([1, 1, 1, 1], [1.0, 1.0, 1.0, 1.0], 100.0)) == [3, 0, 1, 2]
    assert list(offered([1, 1], [1.0, 1.0], 100.0, np.array([2.0, 2.0]))) == [0, 1]


def test_a_client_that_asks_nothing_is_paid_nothing():
    assert offered([0, 0, 0, 1], [1.0, 1.0, 1.0, 2.0], 0.0) == {3: 0.0}


@st.composite
def actions(draw):
    clients = draw(st.integers(1, 12))
    per_client = {"min_size": clients, "max_size": clients}
    select = draw(st.lists(st.booleans(), **per_client))
    payment = draw(st.lists(st.floats(1, 10, width=32), **per_client))
    bids = draw(st.lists(st.integers(0, 30 * MICRO), **per_client))
    return np.array(select), np.array(payment), np.array(bids), draw(st.integers(0, 60 * MICRO))


@given(actions())
def test_the_market_takes_whatever_comes_out(action):
    select, payment, bids, budget = action
    offer = project(select, payment, bids / MICRO, budget / MICRO)
    checked = check_offer(offer, policy="agent", service="s", round_=1, bids=bids, budget=budget)
    assert select[checked.clients].all()
    wanted = np.rint(payment * bids).astype(np.int64)
    if (np.maximum(bids, wanted) * select).sum() <= budget:
        assert set(checked.clients.tolist()) == set(np.flatnonzero(select).tolist())
    left = budget - checked.total
    missing = np.setdiff1d(np.flatnonzero(select), checked.clients)
    assert (np.maximum(bids, wanted)[missing] > left).all()  # nothing that still fits was left out


def test_projecting_twice_changes_nothing():
    rng = np.random.default_rng(0)
    for _ in range(50):
        select, payment, bids = rng.random(10) < 0.7, 1 + rng.random(10), rng.integers(1, 9, 10).astype(float)
        once = project(select, payment, bids, 20.0)
        kept = np.isin(np.arange(10), once.clients)
        twice = project(kept, payment, bids, 20.0)
        np.testing.assert_array_equal(once.clients, twice.clients)
        np.testing.assert_array_equal(to_micro(once.payments), to_micro(twice.payments))


def test_rounding_never_takes_a_payment_below_the_bid():
    assert offered([1], [1.0], 1.0, np.array([0.333333])) == {0: pytest.approx(0.333333, abs=1e-12)}
