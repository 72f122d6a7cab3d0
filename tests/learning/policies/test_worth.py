"""The policy `worth`: it says what clients are worth, and leaves the price to the mechanism."""

from dataclasses import replace

import pytest

from flmarket.core.plugin_options import OptionsError
from learning.policy import POLICIES, DataRanges
from support.feedback import by_client


@pytest.mark.parametrize("bids", [[4, 2, 6], [2, 2.9, 8]])
def test_it_offers_money_in_proportion_to_quality_whatever_clients_ask(observe, context, bids) -> None:
    """Half-way cost 4, half-way DQI .5: at a markup of 1.5, a DQI of 1 is worth 12."""
    offer = POLICIES.create("worth", context).act(observe(bids, [0.5, 0.25, 0.75], budget=100))
    assert by_client(offer) == {0: 6.0, 1: 3.0, 2: 9.0}


def test_it_does_not_want_clients_that_ask_for_more_than_they_are_worth(observe, context) -> None:
    seen = observe([4, 7, 1], [0.5, 0.5, 0.5], budget=100)
    offer = POLICIES.create("worth", context, markup=1.0).act(seen)
    assert offer.clients.tolist() == [2, 0]  # worth 4 each; the best worth per bid first


def test_it_keeps_its_budget_unless_the_mechanism_does(observe, context) -> None:
    seen = observe([4, 2, 6], [0.5, 0.25, 0.75], budget=10)
    assert sum(POLICIES.create("worth", context).act(seen).payments) <= 10
    assert sum(POLICIES.create("worth", context).act(replace(seen, over_budget=True)).payments) == 18


def test_free_clients_come_first(observe, context) -> None:
    seen = observe([4, 0, 2], [0.5, 0.1, 0.5], budget=100)
    assert POLICIES.create("worth", context).act(seen).clients[0] == 1


def test_without_any_quality_nobody_is_worth_anything(observe, context) -> None:
    for quality in (0.0, 5e-324):  # next to none
        nobody = replace(context, ranges=lambda quality=quality: DataRanges((0.0, 8.0), (-1.0, quality)))
        assert POLICIES.create("worth", nobody).act(observe([4, 2], [quality, quality])).clients.tolist() == []


def test_a_context_made_by_hand_says_what_it_lacks(context) -> None:
    with pytest.raises(OptionsError, match="the context does not say what clients' data can cost and be worth"):
        POLICIES.create("worth", replace(context, ranges=None))
    assert POLICIES.create("worth", replace(context, ranges=None), values=[1.0] * 5)


def test_given_values_are_offered_best_value_per_bid_first_as_far_as_the_budget_goes(observe, context) -> None:
    seen, four = observe([2, 1, 1, 1.5], budget=6), replace(context, clients=4)
    offer = POLICIES.create("worth", four, values=[4, 3.0, 2.0, 1.0]).act(seen)
    assert offer.clients.tolist() == [1, 2]
    assert offer.payments.tolist() == [3.0, 2.0]
    assert sum(POLICIES.create("worth", four, values=[4, 3, 2, 1]).act(replace(seen, over_budget=True)).payments) == 9


def test_with_given_values_too_nobody_is_named_who_is_offline(observe, context) -> None:
    seen = replace(observe([2, 1, 1, 1.5], budget=6), offline=frozenset({1}))
    offer = POLICIES.create("worth", replace(context, clients=4), values=[4, 3, 2, 1]).act(seen)
    assert offer.payments.tolist() in ([4.0, 2.0], [2.0, 4.0])  # both are worth twice their bid


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1.0, 2.0], "values must be 3 numbers, one for each client"),
        ([1.0, 2.0, "3"], "values must be 3 numbers, one for each client"),
        (7, "values must be 3 numbers, one for each client"),
        ([1.0, 2.0, -1.0], "values must be numbers from 0 to 10,000,000"),
        ([1.0, 2.0, float("nan")], "values must be numbers from 0 to 10,000,000"),
        ([1.0, 2.0, 1e300], "values must be numbers from 0 to 10,000,000"),
    ],
)
def test_impossible_values(context, values, problem: str) -> None:
    with pytest.raises(OptionsError) as caught:
        POLICIES.create("worth", replace(context, clients=3), values=values)
    assert str(caught.value) == f"policy 'worth' of service {context.service!r}: {problem}"
