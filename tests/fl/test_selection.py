"""Serial selection of many services at once: as one by one, compiled or not."""

import numpy as np
import pytest

from fl import selection

MICRO = 1_000_000


def actions(rng: np.random.Generator, rows: int, clients: int) -> tuple[np.ndarray, ...]:
    bids = rng.integers(0, 5, (rows, clients)) * 1_500_000 + rng.integers(0, 2, (rows, clients))
    wanted = rng.random((rows, clients)) < 0.7
    payment = 1 + rng.integers(0, 3, (rows, clients)) / 3  # a few, so that ties are common
    return wanted, payment, bids, rng.integers(0, 30 * MICRO, rows)


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
@pytest.mark.parametrize("clients", [1, 2, 20, 200])
def test_many_are_chosen_as_one_by_one(clients: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(selection, "_native", None)
    wanted, payment, bids, budget = actions(np.random.default_rng(clients), 60, clients)
    chosen, prices, counts = selection.by_payment(wanted, payment, bids, budget)
    ends = np.cumsum(counts)
    for row, (start, end) in enumerate(zip(ends - counts, ends, strict=True)):
        taken = serially(wanted[row], payment[row], bids[row], int(budget[row]))
        assert chosen[start:end].tolist() == list(taken)
        assert prices[start:end].tolist() == list(taken.values())


@pytest.mark.parametrize("compiled", [True, False])
def test_payments_to_those_who_are_not_wanted_have_no_meaning(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(selection, "_native", None)
    chosen, prices, _ = selection.by_payment(
        np.array([[False, True]]), np.array([[np.nan, 2.0]]), np.full((1, 2), MICRO), np.array([9 * MICRO])
    )
    assert (chosen.tolist(), prices.tolist()) == ([1], [2 * MICRO])


def test_nobody_is_chosen_where_nobody_is_wanted() -> None:
    chosen, prices, counts = selection.by_payment(
        np.zeros((3, 4), np.bool_), np.ones((3, 4)), np.ones((3, 4), np.int64), np.full(3, MICRO)
    )
    assert (len(chosen), len(prices), counts.tolist()) == (0, 0, [0, 0, 0])


def test_the_extension_refuses_arrays_that_do_not_fit() -> None:
    if selection._native is None:
        pytest.skip("the extension is not built")
    with pytest.raises(ValueError, match="must fit each other"):
        selection.by_payment(np.zeros((3, 4), np.bool_), np.ones((3, 5)), np.ones((3, 4), np.int64), np.full(3, MICRO))
