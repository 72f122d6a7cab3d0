"""RLB: its dynamic programme against all bids tried, by hand, and what it learns of prices."""

from dataclasses import replace
from functools import cache
from itertools import product
from statistics import fmean

import numpy as np
import pytest

from des.observation import Observation, Offer, Turn
from flmarket.core.errors import InputError
from learning.bidders.rlb import LEVELS, Values, product_limit
from learning.policy import POLICIES
from support.feedback import feedback_on

PRICES = (1, 2, 4)  # each in one of three auctions


@cache
def best(clients: int, money: int) -> float:
    """Return how many of some clients can be bought with money: the best bid for each, found by trying all of them."""
    if not clients:
        return 0.0
    skip = best(clients - 1, money)
    return max(
        fmean(1 + best(clients - 1, money - price) if price <= bid else skip for price in PRICES)
        for bid in range(money + 1)
    )


def owner(observe, number: int, of: int, money: float) -> Observation:
    """Return the view of the one that comes, of owners who ask nothing and are worth the same."""
    others = np.arange(of) != number - 1
    return replace(observe([0.0] * of, budget=money), turn=Turn(number, of, number - 1), unwilling=others)


def test_its_values_are_those_of_all_bids_tried() -> None:
    chances = np.zeros(LEVELS + 1)
    chances[[16, 32, 64]] = 1 / 3  # prices of 1, 2 and 4 at sixteen steps a unit
    values = Values.of(chances, 1 / 16, 6, 12.0)
    for clients in range(6):
        for money in range(12):
            assert values.worth(clients, np.array([16.0 * money]))[0] == pytest.approx(best(clients, money))


@pytest.mark.parametrize(("owners", "money"), [(1, 3), (2, 2), (3, 3), (4, 4), (4, 7)])
def test_its_bids_earn_what_the_best_bids_earn(observe, make_context, owners, money) -> None:
    bidder = POLICIES.create("rtb-rlb", make_context(owners), prices=PRICES)
    bought = []
    for prices in product(PRICES, repeat=owners):
        left = money
        for number, price in enumerate(prices, 1):
            payments = bidder.act(owner(observe, number, owners, left)).payments
            left -= price if payments.size and payments[0] >= price else 0
            bought.append(bool(payments.size and payments[0] >= price))
    assert sum(bought) / len(PRICES) ** owners == pytest.approx(best(owners, money))


def test_for_the_last_owner_all_that_is_left_is_bid(observe, make_context) -> None:
    bidder = POLICIES.create("rtb-rlb", make_context(2), prices=PRICES)
    assert bidder.act(owner(observe, 2, 2, 3.0)).payments.tolist() == [3.0]
    assert bidder.act(owner(observe, 2, 2, 9.0)).payments.tolist() == [4.0]  # no price is higher


def test_it_bids_less_the_more_are_still_to_come(observe, make_context) -> None:
    bidder = POLICIES.create("rtb-rlb", make_context(400), prices=np.linspace(0.01, 1, 50))
    bids = [float(bidder.act(owner(observe, number, 400, 10.0)).payments[0]) for number in (1, 100, 300, 380, 400)]
    assert bids == sorted(bids)
    assert bids[0] < 0.4 < 0.9 < bids[-1]


def test_with_more_money_than_was_expected_the_programme_is_solved_again(observe, make_context) -> None:
    """Bids do not depend on how far it was solved: its service has 20 in a round, and here 60."""
    rich, poor = owner(observe, 1, 30, 60.0), owner(observe, 1, 30, 10.0)
    first, second = (POLICIES.create("rtb-rlb", make_context(30), prices=PRICES) for _ in range(2))
    bids = [first.act(it).payments.tolist() for it in (poor, rich)]
    assert bids == [second.act(it).payments.tolist() for it in (rich, poor)][::-1]
    assert bids[0] < bids[1]


def test_a_budget_for_the_run_is_spread_over_the_run(observe, make_context) -> None:
    bidder = POLICIES.create("rtb-rlb", make_context(20), prices=PRICES)  # its budget per round is 20
    seen = owner(observe, 1, 20, 20.0)  # in the first of ten rounds
    lapses, stays = (float(bidder.act(it).payments[0]) for it in (seen, replace(seen, total_left=20.0)))
    assert stays < lapses


def test_where_a_round_has_less_money_than_the_run_it_is_for_the_round_alone(observe, make_context) -> None:
    """Its budget was 20 when the run began, as much as for the whole run, and has been lowered to 5 since."""
    bidder = POLICIES.create("rtb-rlb", make_context(20), prices=PRICES)
    seen = owner(observe, 1, 20, 5.0)
    lapses, lowered = (bidder.act(it).payments.tolist() for it in (seen, replace(seen, total_left=18.0)))
    assert lapses == lowered


@pytest.mark.parametrize(
    ("prices", "problem"),
    [
        ([1, True], "a list of numbers"),
        ([1, [2]], "a list of numbers"),
        ([], "one of them at least 0.000001"),
        ("1", "a list of numbers"),
        (1, "a list of numbers"),
        ([5e-324], "one of them at least 0.000001"),
        ([0, 0], "one of them at least 0.000001"),
        ([1, -1], "finite numbers of at least 0"),
        ([1, float("nan")], "finite numbers of at least 0"),
    ],
)
def test_prices_are_checked_before_the_run(make_context, prices, problem) -> None:
    with pytest.raises(InputError, match=f"prices must be .*{problem}"):
        POLICIES.create("rtb-rlb", make_context(3), prices=prices)


def test_its_horizon_is_what_can_be_solved(make_context) -> None:
    POLICIES.create("rtb-rlb", make_context(3), horizon=500)
    with pytest.raises(InputError, match="horizon must be a whole number from 1 to 500"):
        POLICIES.create("rtb-rlb", make_context(3), horizon=501)


def test_prices_seen_and_bids_lost_tell_what_prices_there_are() -> None:
    """Of four, two cost 1 and one 3; one that costs at least 2 counts as the rest from there on: 3, half as likely."""
    chances = product_limit(np.array([0, 2, 0, 1]), np.array([0, 0, 1, 0]))
    assert chances.tolist() == pytest.approx([0, 0.5, 0, 0.5])
    assert product_limit(np.array([0, 1]), np.array([0, 1])).tolist() == pytest.approx([0, 0.5])  # half above
    assert product_limit(np.zeros(2), np.zeros(2)).tolist() == [0, 0]


def test_it_learns_that_clients_are_dear(observe, make_context) -> None:
    bidder, seen = POLICIES.create("rtb-rlb", make_context(20)), owner(observe, 1, 20, 40.0)
    before = float(bidder.act(seen).payments[0])
    offer = Offer(np.arange(20), np.full(20, before))
    bidder.learn(seen, offer, feedback_on(offer, [False] * 20))
    assert float(bidder.act(seen).payments[0]) > before
    other = POLICIES.create("rtb-rlb", make_context(20))
    other.restore(bidder.state())
    assert other.act(seen).payments.tolist() == bidder.act(seen).payments.tolist()
