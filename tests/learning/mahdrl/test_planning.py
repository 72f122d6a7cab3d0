"""The planner: eq. (7) over sets of clients and prices."""

import numpy as np
import pytest

from learning.mahdrl.planner import CountValue, plan, price_levels
from support.feedback import by_client

FLAT = CountValue(none_served=0.0, slope=0.0, curvature=0.0)
MORE = CountValue(none_served=-1.0, slope=5.0, curvature=0.0)


def number_worth(slope, none_served=0.0):
    return CountValue(none_served=none_served, slope=slope, curvature=0.0)


SURE, HALF, CONTESTED = [[1.0]], [[0.5]], [[0.1, 1.0]]


@pytest.mark.parametrize(
    ("q", "kappa", "prices", "chance", "budget", "offers"),
    [
        pytest.param([0.1, 0.9, 0.5], FLAT, [5, 5, 5], SURE, 20, {1: 5}, id="the best alone if number is worth 0"),
        pytest.param(
            [0.1, 0.9, 0.5, 0.6],
            MORE,
            [5, 5, 5, 8],
            SURE,
            15,
            {0: 5, 1: 5, 2: 5},
            id="all who fit if it is worth 5",
        ),
        pytest.param(
            [0.9, 0.1, 0.5, 0.2, 0.05], FLAT, [5, 5, 5, 8, 2], SURE, 17, {0: 5}, id="nobody who promises less"
        ),
        pytest.param([1, 2], FLAT, [5, 5], SURE, 4.9, {}, id="nobody if nobody can be paid"),
        pytest.param([1, 0], FLAT, [[5, 6]] * 2, [[1.0, 1.0]], 6, {0: 5}, id="no overbid where the bid is enough"),
        pytest.param(
            [1, 0], number_worth(0, -5), [[5, 6]] * 2, CONTESTED, 6, {0: 6}, id="an overbid where that decides"
        ),
        # One client at 0.5 promises 0.5 * 1. With the second, which lowers the mean: (1 - 0.25) * (0.5 + 0.1) = 0.45;
        pytest.param([1, 0.2], FLAT, [5, 5], HALF, 20, {0: 5}, id="quality is a mean over those served"),
        # at q = 0.4 the second makes it 0.75 * 0.7 = 0.525.
        pytest.param([1, 0.4], FLAT, [5, 5], HALF, 20, {0: 5, 1: 5}, id="which a second client may raise"),
        # Two clients at 0.5: 1 in the mean, but 1 / 0.75 if any, so number adds 0.75 * log(4/3) to what one promises.
        pytest.param([0, 0], FLAT, [5, 5], HALF, 20, {0: 5}, id="a number that is worth nothing"),
        pytest.param([0, 0], number_worth(1), [5, 5], HALF, 20, {0: 5, 1: 5}, id="number is that served if any are"),
        # After client 0, client 1 is too dear. Two promise 0.9 + 0.12 log 2 < 1; three would, 0.9 + 0.12 log 3 > 1.
        pytest.param([1, 0.9, 0.8], number_worth(0.12), [5, 8, 5], SURE, 10, {0: 5}, id="only those who fit"),
    ],
)
def test_the_offers_that_promise_the_most(q, kappa, prices, chance, budget, offers):
    levels = np.array(prices, dtype=float).reshape(len(q), -1)
    offer = plan(np.array(q, dtype=float), kappa, levels, np.broadcast_to(chance, levels.shape), float(budget))
    assert by_client(offer) == offers


@pytest.mark.parametrize(("online", "chosen"), [([True, False, True], [2]), ([False] * 3, [])])
def test_who_is_offline_is_passed_over(online, chosen):
    prices = np.full((3, 1), 5.0)
    offer = plan(np.array([0.1, 0.9, 0.5]), FLAT, prices, np.ones((3, 1)), 20.0, available=np.array(online))
    assert offer.clients.tolist() == chosen


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


def test_an_agent_that_looks_far_considers_much_higher_prices_where_cores_are_few(make_observation):
    bids = [[5.0, 2.0], [6.0, 1.0], [0.0, 0.0]]
    few, many = make_observation(bids, cores=1), make_observation([row * 8 for row in bids], cores=1)
    levels = price_levels(few, np.array([[6.0, 1.0]]), far=True)
    np.testing.assert_allclose(levels[0], [5.0, 6.000001, 6.48, 7.2, 9.0, 12.0, 18.0])
    rivals = np.array([[6.0, 1.0] * 8])
    assert (price_levels(many, rivals, far=True) == price_levels(many, rivals)).all()


def test_the_bid_is_the_only_level_where_no_offer_can_be_outbid(make_observation):
    seen = make_observation([[5.0, 2.0], [6.0, 1.0], [0.0, 0.0]], cores=2)
    assert price_levels(seen, np.array([[6.0, 1.0]])).tolist() == [[5.0], [2.0]]


def test_what_a_number_of_clients_is_worth():
    value = CountValue(none_served=-1.0, slope=2.0, curvature=-0.5)
    log3 = np.log(3.0)
    assert value.of(1.0, 0.0) == 0.0
    assert value.of(3.0, 0.0) == pytest.approx(2.0 * log3 - 0.5 * log3**2)
    assert value.of(3.0, 0.25) == pytest.approx(0.75 * (2.0 * log3 - 0.5 * log3**2) - 0.25)
    assert value.of(0.5, 0.5) == pytest.approx(-0.5)  # fewer than one cannot be, if any are
