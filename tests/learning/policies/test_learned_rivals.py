"""Rivals that learn prices and values under a budget: resolving, mirror, bwk, and what they are made of."""

import inspect
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.mechanisms.mechanism import MECHANISMS
from des.money import to_micro
from des.observation import Feedback, Offer, Status
from des.offer_checks import check_offer
from flmarket.core.options import OptionsError
from learning.client_selection.budget_spreading import share_of_rounds_left
from learning.client_selection.checks import ObservationError
from learning.client_selection.client_values import FIRST, Gains, contexts
from learning.client_selection.price_levels import MARKUPS, best_levels, level_rows, markups, moved, offer_rows
from learning.episode import play, play_round
from learning.evaluation import evaluate, everywhere, lineup
from learning.policies.bwk import ContextualKnapsack
from learning.policies.mirror import Mirror, isotonic
from learning.policies.resolving import Resolving, price_of_money
from learning.policy import create, load
from learning.seats import seat
from support.evaluation import compare

RIVALS = ["resolving", "mirror", "bwk"]
MICRO = 1_000_000
NAMES = ["alpha", "beta", "gamma"]


def outcome(offer, served, accuracy=0.5):
    served = np.array(served, dtype=np.bool_)
    paid = np.where(served, offer.payments, 0.0)
    losses = np.where(served, 1.0, np.nan)
    return Feedback(1, accuracy, 1.0, served, np.zeros_like(served), paid, losses, Status.TRAINING)


def offer_to(clients, payments):
    return Offer(np.array(clients, dtype=np.int64), np.array(payments, dtype=np.float64))


# ---- all three


@pytest.mark.parametrize("policy", RIVALS)
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"steepness": -1}, "steepness must be a number from 0 to 10, not -1"),
        ({"steepness": float("nan")}, "steepness must be a number from 0 to 10, not nan"),
        ({"trust": "much"}, "trust must be a number from 0 to 10, not 'much'"),
        ({"trust": True}, "trust must be a number from 0 to 10, not True"),
        ({"prior": 0}, "prior must be a number from 0.01 to 1e+09, not 0"),
        ({"rate": 11}, "rate must be a number from 0 to 10, not 11"),
        ({"haste": float("inf")}, "haste must be a number from 0 to 10, not inf"),
    ],
    ids=str,
)
def test_impossible_options(make_context, policy, options, problem) -> None:
    with pytest.raises(OptionsError) as caught:
        create(policy, make_context(), options)
    assert str(caught.value) == f"policy {policy!r} of service 's0': {problem}"


def test_bwk_has_bounds_of_a_finite_width(make_context) -> None:
    with pytest.raises(OptionsError, match=r"exploration must be a number from 0 to 10, not -0\.1"):
        create("bwk", make_context(), {"exploration": -0.1})


@pytest.mark.parametrize("policy", RIVALS)
@pytest.mark.parametrize("field", ["dqi", "bids", "accuracy"])
def test_observations_that_are_not_finite_are_refused(make_context, make_observation, policy, field) -> None:
    seen = make_observation([[1.0, 2.0, 3.0]])
    broken = replace(seen, **{field: np.full(np.shape(getattr(seen, field)), np.nan)})
    with pytest.raises(ObservationError, match=f"service 's0', round 1: the observation's {field}"):
        create(policy, make_context()).act(broken)


clients = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 9_000_000), st.just(10_000_000_000_000)),  # the most that an offer may name
        st.one_of(st.sampled_from([-0.5, 0.0, 1e-12, 0.3]), st.floats(-1, 3)),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)
extremes = {
    "steepness": st.sampled_from([0, 2, 10]),
    "trust": st.sampled_from([0, 10]),
    "prior": st.sampled_from([0.01, 1e9]),
    "rate": st.sampled_from([0, 10]),
    "haste": st.sampled_from([0, 1, 10]),
}


@pytest.mark.parametrize("policy", RIVALS)
@given(
    rounds=st.lists(clients, min_size=1, max_size=4),
    options=st.fixed_dictionaries({}, optional=extremes),
    budget=st.integers(0, 20_000_000),
    total=st.one_of(st.none(), st.integers(0, 60_000_000)),
    accuracy=st.floats(0, 1),
)
def test_offers_are_valid_in_any_market(
    make_observation, make_context, policy, rounds, options, budget, total, accuracy
) -> None:
    """Constraints (4) and (5), nobody who is offline, the same offer when asked again; whatever was learned before."""
    count = min(len(market) for market in rounds)
    player = create(policy, make_context(count), options)
    for number, market in enumerate(rounds, 1):
        own, dqi, online, accepts = (list(column) for column in zip(*market[:count], strict=True))
        allowed = budget if total is None else min(budget, total)
        seen = make_observation([np.array(own) / MICRO], dqi, budget=allowed / MICRO, round_=number)
        offline = frozenset(client for client, there in enumerate(online) if not there)
        seen = replace(seen, offline=offline, total_left=None if total is None else total / MICRO, accuracy=accuracy)
        offer = player.act(seen)
        checked = check_offer(
            offer, policy=policy, service="s0", round_=number, bids=to_micro(seen.own_bids), budget=allowed
        )
        assert not offline & set(checked.clients.tolist())
        again = player.act(seen)
        assert (again.clients.tolist(), again.payments.tolist()) == (offer.clients.tolist(), offer.payments.tolist())
        feedback = outcome(offer, [accepts[client] for client in offer.clients.tolist()], accuracy)
        player.learn(seen, offer, feedback)
        if total is not None:
            total -= int(to_micro(feedback.paid).sum())
    assert all(np.isfinite(values).all() for values in player.state().values())


@pytest.mark.parametrize("policy", RIVALS)
def test_what_is_remembered_makes_a_new_policy_play_on_alike(make_market, policy) -> None:
    def market():
        return make_market(NAMES, seed=3, cores=1, rounds=14)

    whole = market()
    players, reports = seat(whole, dict.fromkeys(NAMES, policy)), []
    play(whole, players, [reports.append])
    parted = market()
    players = seat(parted, dict.fromkeys(NAMES, policy))
    first = [play_round(parted, players) for _ in range(FIRST + 4)]  # something has been learned
    fresh = seat(parted, dict.fromkeys(NAMES, policy))
    assert [r.offers for r in first] == [r.offers for r in reports[: len(first)]]
    for name, player in players.items():
        assert player.resumable
        fresh[name].restore({key: np.array(value) for key, value in player.state().items()})
    rest = []
    play(parted, fresh, [rest.append])
    assert [r.offers for r in rest] == [r.offers for r in reports[len(first) :]]


@pytest.mark.parametrize("policy", RIVALS)
@pytest.mark.parametrize("mechanism", list(MECHANISMS.names()))
def test_they_play_under_every_mechanism(make_market, policy, mechanism) -> None:
    needed = {"posted-price": {"price_per_sample": 0.03}}
    market = make_market(NAMES, rounds=3, cores=1, mechanism=MECHANISMS.load(mechanism)(**needed.get(mechanism, {})))
    reports = []
    play(market, seat(market, dict.fromkeys(NAMES, policy)), [reports.append])
    assert sum(s.served for report in reports for s in report.services) > 0


@pytest.mark.parametrize("policy", RIVALS)
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


@pytest.mark.parametrize("policy", RIVALS)
def test_every_option_is_documented_with_its_limits(policy) -> None:
    """In a comment on its line of the signature, or on those above."""
    found = load(policy)
    source = inspect.getsource(found.__init__)
    for name in inspect.signature(found).parameters:
        if name != "context":
            assert re.search(rf" in \[[^\n]*\n *{name}: |\n *{name}: [^\n]*  #[^\n]* in \[", source), name


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
    gains.learn(noise, Offer.none(), outcome(Offer.none(), []))
    worth = gains.values(told)  # 1 - 4 / (2 + 2 + 1) of the bids is left, and 4 / 5 for the DQI
    assert worth.tolist() == pytest.approx([math.exp(-2 * 0.6)] * 2 + [1.0, 1.0])


def test_the_agreement_is_remembered(make_observation) -> None:
    gains = Gains(steepness=1.0, trust=2.0, prior=10.0)
    against = make_observation([[1.0, 3.0]], [0.6, 0.2])
    gains.learn(against, Offer.none(), outcome(Offer.none(), []))
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
        gains.learn(seen, offer, outcome(offer, [True, True], 1 - error))
    z, worth = contexts(seen), np.log(gains.values(seen))
    slopes = np.linalg.lstsq(np.column_stack([z, np.ones(8)]), worth, rcond=None)[0]
    assert slopes[1] > 1.0
    assert slopes[0] < 0.8


def test_a_round_in_which_nobody_served_says_nothing_about_clients(make_observation) -> None:
    gains = Gains(steepness=1.0, trust=1.0, prior=1.0)
    seen = make_observation([[1.0, 3.0, 2.0]], [0.2, 0.6, 0.9])
    offer = offer_to([0], [1.0])
    for _ in range(10):
        gains.learn(seen, offer, outcome(offer, [False]))
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
    assert moved(1.0, 0.1, 20.0, 20.0) == 1.0
    assert moved(1.0, 0.1, 30.0, 20.0) == pytest.approx(math.exp(0.05))
    assert moved(1.0, 0.1, 900.0, 20.0) == pytest.approx(math.exp(0.1))
    assert moved(1.0, 0.1, 0.0, 20.0) == pytest.approx(math.exp(-0.1))
    assert moved(1.0, 0.1, 0.0, 0.0) == 1.0
    assert moved(1e3, 10, 900.0, 20.0) == 1e3


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
    player.learn(seen, offer, outcome(offer, [True, False]))
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
        player.learn(seen, low, outcome(low, [False]))
        player.learn(seen, high, outcome(high, [True]))
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
            player.learn(replace(seen, budget=budget), offer, outcome(offer, [True] * len(offer.clients)))
        prices[budget] = player.money
    assert prices[7.0] > 10 * prices[100.0]


# ---- bwk


def test_bwk_s_bounds_close_in_on_what_happens(make_context, make_observation) -> None:
    player, seen = ContextualKnapsack(make_context(), exploration=1.0), make_observation([[2.0, 3.0, 4.0]])
    offer = offer_to([0], [2.0])
    rows = offer_rows(seen, offer)
    low, high = player.chances(rows)
    for _ in range(100):
        player.learn(seen, offer, outcome(offer, [False]))
    after_low, after_high = player.chances(rows)
    assert after_high - after_low < high - low
    assert after_high < 0.15
    assert after_low == 0.0


def test_bwk_without_exploration_expects_one_thing(make_context, make_observation) -> None:
    player, seen = ContextualKnapsack(make_context(), exploration=0.0), make_observation([[2.0, 3.0, 4.0]])
    low, high = player.chances(level_rows(seen))
    np.testing.assert_array_equal(low, high)
    np.testing.assert_allclose(low.reshape(3, -1)[0], np.minimum(0.85 + 0.3 * MARKUPS, 1.0))


def test_two_seats_of_the_same_policy_learn_apart(make_market) -> None:
    results = evaluate(
        lambda seed: make_market(["alpha", "beta"], seed=seed, rounds=6, cores=1),
        {"x": lineup({"alpha": "bwk", "beta": "mirror"})},
        [0],
    )
    assert results.served.sum() > 0
