"""Actions that cost too much: serial selection, compiled or not, and that an offer comes out which the market takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.money import MICRO, to_micro
from des.offer_checks import check_offer
from learning.environments import actions
from learning.environments.actions import by_payment, project
from support.feedback import by_client
from support.implementations import vectors


def markets(rng: np.random.Generator, clients: int, payments: int) -> tuple[np.ndarray, ...]:
    shape = (20, 3, clients)
    bids = rng.integers(0, 5, shape) * 1_500_000 + rng.integers(0, 2, shape)
    wanted = rng.random(shape) < 0.7
    payment = 1 + rng.integers(0, payments, shape) / payments
    return wanted, payment, bids, rng.integers(0, 30 * MICRO, shape[:2])


def serially(wanted: np.ndarray, payment: np.ndarray, bids: np.ndarray, budget: int) -> dict[int, int]:
    """The rule, one client at a time: what each that is taken is paid, in the order of choice."""
    taken: dict[int, int] = {}
    for client in sorted(np.flatnonzero(wanted), key=lambda c: (-payment[c], bids[c], c)):
        price = max(int(bids[client]), round(float(payment[client]) * int(bids[client])))
        if price <= budget:
            taken[int(client)] = price
            budget -= price
    return taken


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("clients", [1, 2, 20, 64, 200])
@pytest.mark.parametrize("payments", [3, 2**40], ids=["many ties", "no ties"])
def test_many_are_chosen_as_one_by_one(
    clients: int, payments: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(actions, "_native", None)
    wanted, payment, bids, budget = markets(np.random.default_rng(clients), clients, payments)
    expected = [
        (b, m, client, price)
        for b, m in np.ndindex(budget.shape)
        for client, price in serially(wanted[b, m], payment[b, m], bids[b, m], int(budget[b, m])).items()
    ]
    columns = by_payment(wanted, payment, bids, budget)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


@pytest.mark.parametrize("width", [0, 1])
def test_vectors_of_any_width_choose_the_same(width: int) -> None:
    many = markets(np.random.default_rng(0), 20, 50)
    one_by_one = [column.tolist() for column in by_payment(*many)]
    with vectors(width):
        assert [column.tolist() for column in by_payment(*many)] == one_by_one


@pytest.mark.parametrize("compiled", [True, False])
def test_payments_to_those_who_are_not_wanted_have_no_meaning(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(actions, "_native", None)
    columns = by_payment(
        np.array([[[False, True]]]), np.array([[[np.nan, 2.0]]]), np.full((1, 1, 2), MICRO), np.array([[9 * MICRO]])
    )
    assert [column.tolist() for column in columns] == [[0], [0], [1], [2 * MICRO]]


def test_nobody_is_chosen_where_nobody_is_wanted() -> None:
    shape = (1, 3, 4)
    columns = by_payment(np.zeros(shape, np.bool_), np.ones(shape), np.ones(shape, np.int64), np.full((1, 3), MICRO))
    assert [column.tolist() for column in columns] == [[], [], [], []]


def test_the_extension_refuses_arrays_that_do_not_fit() -> None:
    if actions._native is None:
        pytest.skip("the extension is not built")
    with pytest.raises(ValueError, match="must fit each other"):
        by_payment(
            np.zeros((1, 3, 4), np.bool_), np.ones((1, 3, 5)), np.ones((1, 3, 4), np.int64), np.full((1, 3), MICRO)
        )


BIDS = np.array([2.0, 3.0, 4.0, 0.0])


def offered(select, payment, budget, bids=BIDS):
    offer = project(np.array(select, dtype=np.bool_), np.array(payment, dtype=np.float64), bids, budget)
    return by_client(offer)


def test_the_highest_payment_in_units_of_the_bid_comes_first():
    assert offered([1, 1, 1, 0], [1.0, 1.0, 1.1, 1.0], 6.5) == {2: 4.4, 0: 2.0}


def test_of_equal_payments_the_lower_bid_comes_first_and_then_the_lower_index():
    assert list(offered([1, 1, 1, 1], [1.0, 1.0, 1.0, 1.0], 100.0)) == [3, 0, 1, 2]
    assert list(offered([1, 1], [1.0, 1.0], 100.0, np.array([2.0, 2.0]))) == [0, 1]


def test_a_client_that_asks_nothing_is_paid_nothing():
    assert offered([0, 0, 0, 1], [1.0, 1.0, 1.0, 2.0], 0.0) == {3: 0.0}


@st.composite
def drawn_actions(draw):
    clients = draw(st.integers(1, 12))
    per_client = {"min_size": clients, "max_size": clients}
    select = draw(st.lists(st.booleans(), **per_client))
    payment = draw(st.lists(st.floats(1, 10, width=32), **per_client))
    bids = draw(st.lists(st.integers(0, 30 * MICRO), **per_client))
    return np.array(select), np.array(payment), np.array(bids), draw(st.integers(0, 60 * MICRO))


@given(drawn_actions())
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
