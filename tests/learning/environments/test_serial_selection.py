"""Serial selection of many services at once: as one by one, compiled or not."""

import numpy as np
import pytest

from learning.environments import actions as selection
from support.implementations import vectors

MICRO = 1_000_000


def actions(rng: np.random.Generator, clients: int, payments: int) -> tuple[np.ndarray, ...]:
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
        monkeypatch.setattr(selection, "_native", None)
    wanted, payment, bids, budget = actions(np.random.default_rng(clients), clients, payments)
    expected = [
        (b, m, client, price)
        for b, m in np.ndindex(budget.shape)
        for client, price in serially(wanted[b, m], payment[b, m], bids[b, m], int(budget[b, m])).items()
    ]
    columns = selection.by_payment(wanted, payment, bids, budget)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


@pytest.mark.parametrize("width", [0, 1])
def test_vectors_of_any_width_choose_the_same(width: int) -> None:
    made = actions(np.random.default_rng(0), 20, 50)
    found = [column.tolist() for column in selection.by_payment(*made)]
    with vectors(width):
        assert [column.tolist() for column in selection.by_payment(*made)] == found


@pytest.mark.parametrize("compiled", [True, False])
def test_payments_to_those_who_are_not_wanted_have_no_meaning(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(selection, "_native", None)
    columns = selection.by_payment(
        np.array([[[False, True]]]), np.array([[[np.nan, 2.0]]]), np.full((1, 1, 2), MICRO), np.array([[9 * MICRO]])
    )
    assert [column.tolist() for column in columns] == [[0], [0], [1], [2 * MICRO]]


def test_nobody_is_chosen_where_nobody_is_wanted() -> None:
    shape = (1, 3, 4)
    columns = selection.by_payment(
        np.zeros(shape, np.bool_), np.ones(shape), np.ones(shape, np.int64), np.full((1, 3), MICRO)
    )
    assert [column.tolist() for column in columns] == [[], [], [], []]


def test_the_extension_refuses_arrays_that_do_not_fit() -> None:
    if selection._native is None:
        pytest.skip("the extension is not built")
    with pytest.raises(ValueError, match="must fit each other"):
        selection.by_payment(
            np.zeros((1, 3, 4), np.bool_), np.ones((1, 3, 5)), np.ones((1, 3, 4), np.int64), np.full((1, 3), MICRO)
        )
