"""Rivals that learn prices and values under a budget: resolving, mirror, bwk, and what they are made of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.observation import Offer
from learning.client_selection.client_values import Gains, contexts
from learning.client_selection.pricing import (
    MARKUPS,
    best_levels,
    level_rows,
    markups,
    next_price_of_money,
    offer_rows,
    share_of_rounds_left,
)
from learning.evaluation import evaluate, everywhere
from learning.play_round import play, play_round
from learning.policies.bwk import ContextualKnapsack
from learning.policies.mirror import Mirror, isotonic
from learning.policies.resolving import Resolving, price_of_money
from learning.seats import seat
from support.evaluation import compare
from support.feedback import feedback_on, offer_to
from support.tiers import slow

RIVALS = ["resolving", "mirror", "bwk"]
NAMES = ["alpha", "beta", "gamma"]


@pytest.mark.parametrize("policy", ["mirror", *slow("resolving", "bwk")])
def test_they_beat_random(make_market, policy) -> None:
    """Where progress comes from clients with much data, everybody playing the same."""
    entrants = {name: everywhere(name) for name in (policy, "random")}
    results = evaluate(lambda seed: make_market(NAMES, seed=seed, rounds=20), entrants, range(5))
    assert compare(results, policy, "random").low > 0.02


@pytest.mark.parametrize("policy", RIVALS)
def test_they_pay_more_than_the_bid_where_rivals_take_their_clients(make_market, policy) -> None:
    """One core, and five rivals that want the same clients."""
    names = [*NAMES, "delta", "epsilon", "zeta"]

    def paid(rivals):
        names_of = dict.fromkeys(names, rivals) | {"alpha": policy}
        market = make_market(names, seed=2, cores=1, rounds=25)
        reports = []
        play(market, seat(market, names_of), [reports.append])
        own = [o for report in reports[10:] for o in report.offers if o.service == "alpha"]
        return np.mean([o.payment / o.bid - 1 for o in own])

    contested = paid("dearest")
    assert contested > 0.01
    assert paid("lcfa") < contested, "these want others"


@pytest.mark.parametrize("policy", RIVALS)
def test_a_budget_for_the_whole_run_lasts(make_market, policy) -> None:
    """With an even share, no round may cost more than what is left for it; and most of the money is used."""
    spec = replace(make_market(["alpha"]).services[0], total_budget=40_000_000)
    market = make_market([spec], rounds=20)
    players = seat(market, {"alpha": policy}, {"alpha": {"haste": 0}})
    spent = []
    while not market.finished:
        [row] = play_round(market, players).services
        spent.append(row.spent)
    assert sum(spent) > 20_000_000
    assert sum(spent[10:]) > 5_000_000, "there is money left for the second half"
    assert all(cost <= 40_000_000 - sum(spent[:at]) for at, cost in enumerate(spent))


@pytest.mark.parametrize("policy", RIVALS)
def test_a_budget_that_lapses_is_spent(make_market, policy) -> None:
    """As far as any other policy spends it: nothing is saved that cannot be kept."""
    entrants = {name: everywhere(name) for name in (policy, "dearest")}
    results = evaluate(lambda seed: make_market(["alpha"], seed=seed, rounds=10), entrants, range(3))
    spent = results.spent.mean(axis=(1, 2, 3))
    assert spent[0] > 0.9 * spent[1]


# ---- what clients are worth


def test_the_prior_follows_the_bids_and_the_dqi_as_far_as_they_agree(make_observation) -> None:
    gains = Gains(steepness=1.0, trust=2.0, prior=10.0)
    alike = make_observation([[1.0, 3.0]], [0.2, 0.6])  # both standardise to -1, 1; correlation 1
    assert gains.values(alike).tolist() == pytest.approx([math.exp(-2 * (1 + 2)), 1.0])
    against = make_observation([[1.0, 3.0]], [0.6, 0.2])  # correlation -1: the DQI does not count
    assert gains.values(against).tolist() == pytest.approx([math.exp(-2), 1.0])


def test_bids_that_differ_between_equal_clients_count_less(make_observation) -> None:
    """Two clients of each DQI. Where they ask the same, bids decide; where they do not, the DQI does."""
    gains = Gains(steepness=1.0, trust=0.0, prior=10.0)
    dqi = [0.2, 0.2, 0.6, 0.6]
    told = make_observation([[3.0, 3.0, 1.0, 1.0]], dqi)  # the same for the same data; the opposite of the DQI
    noise = make_observation([[1.0, 3.0, 1.0, 3.0]], dqi)
    assert gains.values(told).tolist() == pytest.approx([1.0, 1.0, math.exp(-2), math.exp(-2)])
    worth = gains.values(noise)  # of 2 comparisons, 4 squared deviations in all: nothing of the bids is left
    assert worth.tolist() == pytest.approx([math.exp(-2), math.exp(-2), 1.0, 1.0])
    gains.learn(noise, Offer.none(), feedback_on(Offer.none(), []))
    worth = gains.values(told)  # 1 - 4 / (2 + 2 + 1) of the bids is left, and 4 / 5 for the DQI
    assert worth.tolist() == pytest.approx([math.exp(-2 * 0.6)] * 2 + [1.0, 1.0])


def test_the_agreement_is_remembered(make_observation) -> None:
    gains = Gains(steepness=1.0, trust=2.0, prior=10.0)
    against = make_observation([[1.0, 3.0]], [0.6, 0.2])
    gains.learn(against, Offer.none(), feedback_on(Offer.none(), []))
    alike = make_observation([[1.0, 3.0]], [0.2, 0.6])  # the mean of -1 and 1
    assert gains.values(alike).tolist() == pytest.approx([math.exp(-2), 1.0])


def test_the_learning_curve_corrects_the_prior(make_observation) -> None:
    """Bids say nothing here, and the errors fall by the DQI alone: against a prior for bids, this is learned."""
    gains = Gains(steepness=1.0, trust=0.0, prior=0.05)
    rng = np.random.default_rng(0)
    shown, seen = [], None
    for round_ in range(1, 81):
        seen = make_observation([rng.uniform(1, 3, 8)], rng.uniform(0, 1, 8))
        chosen = rng.permutation(8)[:2]
        shown.append(contexts(seen)[chosen].mean(axis=0))
        error = (1 + round_) ** -0.8 * math.exp(-0.8 * 2 * np.mean(shown, axis=0)[1])
        offer = offer_to(chosen, seen.own_bids[chosen])
        gains.learn(seen, offer, feedback_on(offer, [True, True], 1 - error))
    z, worth = contexts(seen), np.log(gains.values(seen))
    slopes = np.linalg.lstsq(np.column_stack([z, np.ones(8)]), worth, rcond=None)[0]
    assert slopes[1] > 1.0
    assert slopes[0] < 0.8


def test_a_round_in_which_nobody_served_says_nothing_about_clients(make_observation) -> None:
    gains = Gains(steepness=1.0, trust=1.0, prior=1.0)
    seen = make_observation([[1.0, 3.0, 2.0]], [0.2, 0.6, 0.9])
    offer = offer_to([0], [1.0])
    for _ in range(10):
        gains.learn(seen, offer, feedback_on(offer, [False]))
    assert not gains.state()["gram"].any()


def test_optimism_is_larger_where_less_is_known(make_observation) -> None:
    gains = Gains(steepness=0.0, trust=0.0, prior=1.0)
    seen = make_observation([[1.0, 2.0, 3.0]], [0.5, 0.5, 0.5])
    assert gains.values(seen).tolist() == [1.0, 1.0, 1.0]
    assert gains.values(seen, 1.0).tolist() == pytest.approx([1.0, math.exp(-(1.5**0.5) / 0.8), 1.0])


# ---- prices


def test_the_levels_of_offers_are_read_back(make_observation) -> None:
    seen = make_observation([[2.0, 0.0, 4.0]])
    offer = offer_to([2, 1, 0], [5.0, 1.0, 2.0])
    assert markups(seen, offer).tolist() == [0.25, 0.0, 0.0]
    assert offer_rows(seen, offer)[:, 1].tolist() == [0.25, 0.0, 0.0]
    assert level_rows(seen).shape == (3 * len(MARKUPS), 4)
    np.testing.assert_array_equal(level_rows(seen)[3], offer_rows(seen, offer_to([0], [2.5]))[0])


def test_the_price_of_money_makes_what_is_wanted_affordable() -> None:
    """Two clients worth 4 and 3 at a price of 2 each: with money for one, it is 3 / 2; with money for both, 0."""
    worth, prices = np.array([[4.0], [3.0]]), np.array([[2], [2]])
    assert price_of_money(worth, prices, 4) == 0.0
    money = price_of_money(worth, prices, 2)
    assert money == pytest.approx(1.5)
    assert best_levels(worth, prices, money)[1].tolist() == pytest.approx([1.0, 0.0])


def test_dearer_money_means_lower_offers() -> None:
    worth, prices = np.array([[0.5, 0.9]]), np.array([[1.0, 1.5]])
    assert best_levels(worth, prices, 0.1)[0].tolist() == [1]
    assert best_levels(worth, prices, 1.0)[0].tolist() == [0]


def test_the_price_of_money_moves_with_the_deviation() -> None:
    assert next_price_of_money(1.0, 0.1, 20.0, 20.0) == 1.0
    assert next_price_of_money(1.0, 0.1, 30.0, 20.0) == pytest.approx(math.exp(0.05))
    assert next_price_of_money(1.0, 0.1, 900.0, 20.0) == pytest.approx(math.exp(0.1))
    assert next_price_of_money(1.0, 0.1, 0.0, 20.0) == pytest.approx(math.exp(-0.1))
    assert next_price_of_money(1.0, 0.1, 0.0, 0.0) == 1.0
    assert next_price_of_money(1e3, 10, 900.0, 20.0) == 1e3


@pytest.mark.parametrize(("haste", "part"), [(0, 1 / 4), (1, 4 / 10), (2, 16 / 30)])
def test_earlier_rounds_get_more_of_a_budget_for_the_run(make_observation, haste, part) -> None:
    seen = replace(make_observation([[1.0]], round_=77), total_left=60.0)  # of 80 rounds, 4 are left
    assert share_of_rounds_left(seen, haste) == pytest.approx(60 * part)
    assert share_of_rounds_left(replace(seen, round=80), haste) == 60.0
    assert share_of_rounds_left(replace(seen, total_left=None), haste) is None


# ---- resolving


def test_resolving_raises_its_chances_with_wins_and_lowers_them_with_losses(make_context, make_observation) -> None:
    seen, offer = make_observation([[2.0, 3.0, 4.0]]), offer_to([0, 2], [2.0, 4.0])
    player = Resolving(make_context(), rate=1.0)
    start = player.weights.copy()
    player.act(seen)
    player.learn(seen, offer, feedback_on(offer, [True, False]))
    assert player.weights[0] < start[0], "one in two is fewer than expected"
    assert player.weights[2] < 0, "the dear one was refused"
    assert player.weights[1] == start[1], "nothing was offered above a bid"


# ---- mirror


def test_isotonic_shares_by_hand() -> None:
    assert isotonic(np.array([1.0, 1.0, 3.0]), np.array([2.0, 4.0, 4.0])).tolist() == pytest.approx(
        [1 / 3, 1 / 3, 3 / 4]
    )
    assert isotonic(np.array([3.0, 0.0, 0.0]), np.array([3.0, 3.0, 3.0])).tolist() == pytest.approx([1 / 3] * 3)
    assert isotonic(np.array([0.0, 1.0]), np.array([1.0, 2.0])).tolist() == [0.0, 0.5]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=6))
def test_isotonic_shares_ascend_and_keep_the_sum(counts) -> None:
    offers = np.array([won + lost for won, lost in counts], dtype=np.float64)
    wins = np.array([won for won, _ in counts], dtype=np.float64)
    shares = isotonic(wins, offers)
    assert (np.diff(shares) >= 0).all()
    assert (shares * offers).sum() == pytest.approx(wins.sum())


def test_mirror_learns_what_it_takes_to_win(make_context, make_observation) -> None:
    """Offers of the bid lose and those of a tenth more win: the chance jumps between them."""
    seen, player = make_observation([[2.0, 2.0, 2.0]]), Mirror(make_context())
    low, high = offer_to([0], [2.0]), offer_to([0], [2.2])
    for _ in range(60):
        player.learn(seen, low, feedback_on(low, [False]))
        player.learn(seen, high, feedback_on(high, [True]))
    at_bid, _, tenth, *_ = player.chances()
    assert at_bid < 0.35
    assert tenth > 0.9


def test_mirror_prices_money_by_what_it_wants(make_context, make_observation) -> None:
    """With money for one client it stays dear, with money for all it becomes cheap."""
    seen = make_observation([[2.0, 3.0, 4.0, 5.0, 6.0, 7.0]])
    prices = {}
    for budget in (7.0, 100.0):
        player = Mirror(make_context())
        for _ in range(60):
            offer = player.act(replace(seen, budget=budget))
            player.learn(replace(seen, budget=budget), offer, feedback_on(offer, [True] * len(offer.clients)))
        prices[budget] = player.money
    assert prices[7.0] > 10 * prices[100.0]


# ---- bwk


def test_bwk_s_bounds_close_in_on_what_happens(make_context, make_observation) -> None:
    player, seen = ContextualKnapsack(make_context(), exploration=1.0), make_observation([[2.0, 3.0, 4.0]])
    offer = offer_to([0], [2.0])
    rows = offer_rows(seen, offer)
    low, high = player.chances(rows)
    for _ in range(100):
        player.learn(seen, offer, feedback_on(offer, [False]))
    after_low, after_high = player.chances(rows)
    assert after_high - after_low < high - low
    assert after_high < 0.15
    assert after_low == 0.0


def test_bwk_without_exploration_expects_one_thing(make_context, make_observation) -> None:
    player, seen = ContextualKnapsack(make_context(), exploration=0.0), make_observation([[2.0, 3.0, 4.0]])
    low, high = player.chances(level_rows(seen))
    np.testing.assert_array_equal(low, high)
    np.testing.assert_allclose(low.reshape(3, -1)[0], np.minimum(0.85 + 0.3 * MARKUPS, 1.0))
