"""The policy that says what clients are worth."""

import numpy as np
import pytest

from des.records import Observation
from learning.policy import PolicyContext, PolicyOptionsError, create

CONTEXT = PolicyContext("a", 1, 4, 1, 10, 6.0, 0.9, 10.0)


def observe(
    bids: list[float], *, budget: float = 6.0, over_budget: bool = False, offline: frozenset[int] = frozenset()
):
    return Observation(
        round=1, rounds=10, service="a", services=("a",), dqi=np.full(4, 0.5), bids=np.array([bids]), budget=budget,
        cores=1, accuracy=0.1, target_accuracy=0.9, key=bytes(32), offline=offline, over_budget=over_budget,
    )  # fmt: skip


def test_given_values_are_offered_best_value_per_bid_first_as_far_as_the_budget_goes() -> None:
    offer = create("worth", CONTEXT, {"values": [4, 3.0, 2.0, 1.0]}).act(observe([2.0, 1.0, 1.0, 1.5]))
    assert offer.clients.tolist() == [1, 2]
    assert offer.payments.tolist() == [3.0, 2.0]


def test_where_the_mechanism_keeps_the_budget_all_are_named_that_are_worth_their_bid() -> None:
    seen = observe([2.0, 1.0, 1.0, 1.5], over_budget=True)
    offer = create("worth", CONTEXT, {"values": [4.0, 3.0, 2.0, 1.0]}).act(seen)
    assert offer.clients.tolist() == [1, 0, 2] or offer.clients.tolist() == [1, 2, 0]


def test_without_values_quality_decides() -> None:
    offer = create("worth", CONTEXT, {"markup": 2.0}).act(observe([1.0, 1.0, 1.0, 5.0], budget=100.0))
    assert sorted(offer.clients.tolist()) == [0, 1, 2]  # of equal quality, worth twice the mean bid of 2
    assert offer.payments.tolist() == [4.0, 4.0, 4.0]


def test_who_is_offline_is_not_named() -> None:
    seen = observe([2.0, 1.0, 1.0, 1.5], offline=frozenset({1}))
    assert create("worth", CONTEXT, {"values": [4.0, 3.0, 2.0, 1.0]}).act(seen).clients.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1.0, 2.0], "values must be 4 numbers, one for each client"),
        ([1.0, 2.0, 3.0, "4"], "values must be 4 numbers, one for each client"),
        ([1.0, 2.0, 3.0, -1.0], "values must be finite numbers, none below 0"),
        ([1.0, 2.0, 3.0, float("nan")], "values must be finite numbers, none below 0"),
        (7, "values must be 4 numbers, one for each client"),
    ],
)
def test_values_that_it_does_not_take(values, problem: str) -> None:
    with pytest.raises(PolicyOptionsError) as caught:
        create("worth", CONTEXT, {"values": values})
    assert str(caught.value) == f"policy 'worth' of service 'a': {problem}"
