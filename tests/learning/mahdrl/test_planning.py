"""The planner: eq. (7) over sets of clients and prices."""

import numpy as np
import pytest

from learning.mahdrl.planner import CountValue, plan, price_levels

FLAT = CountValue(none_served=0.0, slope=0.0, curvature=0.0)
MORE = CountValue(none_served=-1.0, slope=5.0, curvature=0.0)


def bids_only(bids):
    prices = np.asarray(bids, dtype=float)[:, None]
    return prices, np.ones(prices.shape)


def test_the_best_client_alone_where_number_is_worth_nothing():
    prices, chance = bids_only([5.0, 5.0, 5.0])
    offer = plan(np.array([0.1, 0.9, 0.5]), FLAT, prices, chance, budget=20.0)
    assert offer.clients.tolist() == [1]


def test_the_budget_is_filled_where_number_is_worth_much():
    prices, chance = bids_only([5.0, 5.0, 5.0, 8.0])
    offer = plan(np.array([0.1, 0.9, 0.5, 0.6]), MORE, prices, chance, budget=15.0)
    assert sorted(offer.clients.tolist()) == [0, 1, 2]
    assert offer.payments.tolist() == [5.0, 5.0, 5.0]


def test_overbids_only_where_that_makes_the_difference():
    prices = np.array([[5.0, 6.0], [5.0, 6.0]])
    q = np.array([1.0, 0.0])
    sure = plan(q, FLAT, prices, np.array([[1.0, 1.0], [1.0, 1.0]]), budget=6.0)
    assert (sure.clients.tolist(), sure.payments.tolist()) == ([0], [5.0])
    kappa = CountValue(none_served=-5.0, slope=0.0, curvature=0.0)
    contested = plan(q, kappa, prices, np.array([[0.1, 1.0], [0.1, 1.0]]), budget=6.0)
    assert (contested.clients.tolist(), contested.payments.tolist()) == ([0], [6.0])


@pytest.mark.parametrize("budget", [5.0, 5.2, 5.6, 6.5])
def test_the_only_client_is_not_lost_to_a_price_beyond_the_budget(make_observation, budget):
    # A rival bids 5.5: the levels are 5, just above 5.5, and beyond; the surest may not be affordable.
    prices = price_levels(make_observation([[5.0], [5.5]], cores=1), np.array([[5.5]]))
    chance = np.array([[0.1, 0.6, 0.8, 0.9]])
    offer = plan(np.array([1.0]), FLAT, prices, chance, budget=budget)
    assert offer.clients.tolist() == [0]
    assert 5.0 <= offer.payments[0] <= budget


def test_the_price_that_beats_k_rivals_is_considered(make_observation):
    rivals = np.arange(20.0, 10.0, -1.0)[:, None]  # ten rivals; with K = 8 it takes more than 13
    levels = price_levels(make_observation([[1.0], *(20.0 - np.arange(10.0))[:, None]], cores=8), rivals)
    assert 13.000001 in levels[0]


def test_no_offer_where_no_client_can_be_paid():
    prices, chance = bids_only([5.0, 5.0])
    assert len(plan(np.array([1.0, 2.0]), FLAT, prices, chance, budget=4.9).clients) == 0


def test_renaming_clients_renames_the_offer():
    rng = np.random.default_rng(0)
    q, prices = rng.normal(size=12), rng.uniform(1, 9, size=(12, 3)).cumsum(axis=1)
    chance = np.sort(rng.random((12, 3)), axis=1)
    order = rng.permutation(12)
    plain, renamed = plan(q, MORE, prices, chance, 20.0), plan(q[order], MORE, prices[order], chance[order], 20.0)
    assert order[renamed.clients].tolist() == plain.clients.tolist()
    assert renamed.payments.tolist() == plain.payments.tolist()


def test_never_over_the_budget():
    rng = np.random.default_rng(1)
    for _ in range(200):
        prices = np.round(rng.uniform(0, 9, size=(8, 4)).cumsum(axis=1), 6)
        offer = plan(rng.normal(size=8), MORE, prices, rng.random((8, 4)), budget=20.0)
        assert offer.payments.sum() <= 20.0 + 1e-9
        assert len(set(offer.clients.tolist())) == len(offer.clients)


def test_price_levels_start_at_the_bid_and_step_over_rivals(make_observation):
    seen = make_observation([[5.0, 2.0], [6.0, 1.0], [0.0, 0.0]], cores=1)
    levels = price_levels(seen, np.array([[6.0, 1.0]]))
    np.testing.assert_allclose(levels[0], [5.0, 6.000001, 6.48, 7.2])
    assert levels[1, 0] == 2.0
    assert (levels >= seen.own_bids[:, None]).all()


def test_the_bid_is_the_only_level_where_no_offer_can_be_outbid(make_observation):
    seen = make_observation([[5.0, 2.0], [6.0, 1.0], [0.0, 0.0]], cores=2)
    assert price_levels(seen, np.array([[6.0, 1.0]])).tolist() == [[5.0], [2.0]]


def test_who_is_offline_is_passed_over():
    prices, chance = bids_only([5.0, 5.0, 5.0])
    online = np.array([True, False, True])
    offer = plan(np.array([0.1, 0.9, 0.5]), FLAT, prices, chance, 20.0, available=online)
    assert offer.clients.tolist() == [2]
    assert len(plan(np.zeros(3), FLAT, prices, chance, 20.0, available=np.zeros(3, dtype=bool)).clients) == 0


def test_it_stops_where_another_client_promises_less():
    prices, chance = bids_only([5.0, 5.0, 5.0, 8.0, 2.0])
    q = np.array([0.9, 0.1, 0.5, 0.2, 0.05])
    assert plan(q, FLAT, prices, chance, budget=17.0).clients.tolist() == [0]


def test_quality_is_a_mean_over_those_who_are_served():
    # One client at 0.5 promises 0.5 * 1. With the second, which lowers the mean: (1 - 0.25) * (0.5 + 0.1) / 1 = 0.45.
    prices, chance = np.full((2, 1), 5.0), np.full((2, 1), 0.5)
    assert plan(np.array([1.0, 0.2]), FLAT, prices, chance, budget=20.0).clients.tolist() == [0]
    # At q = 0.4 the second makes it 0.75 * 0.7 = 0.525, and is worth its place.
    assert plan(np.array([1.0, 0.4]), FLAT, prices, chance, budget=20.0).clients.tolist() == [0, 1]


def test_the_number_is_that_of_the_clients_served_if_any_are():
    # Two clients at 0.5: 1 in the mean, but 1 / 0.75 if any, so that number adds 0.75 * log(4/3) to what one promises.
    prices, chance = np.full((2, 1), 5.0), np.full((2, 1), 0.5)
    number = CountValue(none_served=0.0, slope=1.0, curvature=0.0)
    assert plan(np.zeros(2), FLAT, prices, chance, budget=20.0).clients.tolist() == [0]
    assert plan(np.zeros(2), number, prices, chance, budget=20.0).clients.tolist() == [0, 1]


def test_a_client_that_does_not_fit_counts_for_nothing():
    # After client 0, client 1 is too dear. Two clients promise 0.9 + 0.12 log 2 < 1; three would, 0.9 + 0.12 log 3 > 1.
    prices, chance = bids_only([5.0, 8.0, 5.0])
    number = CountValue(none_served=0.0, slope=0.12, curvature=0.0)
    assert plan(np.array([1.0, 0.9, 0.8]), number, prices, chance, budget=10.0).clients.tolist() == [0]


def test_what_a_number_of_clients_is_worth():
    value = CountValue(none_served=-1.0, slope=2.0, curvature=-0.5)
    log3 = np.log(3.0)
    assert value.of(1.0, 0.0) == 0.0
    assert value.of(3.0, 0.0) == pytest.approx(2.0 * log3 - 0.5 * log3**2)
    assert value.of(3.0, 0.25) == pytest.approx(0.75 * (2.0 * log3 - 0.5 * log3**2) - 0.25)
    assert value.of(0.5, 0.5) == pytest.approx(-0.5)  # fewer than one cannot be, if any are
