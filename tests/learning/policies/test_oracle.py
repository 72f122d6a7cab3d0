"""The privileged best response: exact knapsack, critical prices, and what it sees."""

import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.clients.disclosure import Disclosure
from des.log_records import Outcome
from des.money import MICRO
from des.observation import Offer, Privileged
from des.offer_checks import OfferError
from flmarket.core.errors import RunError
from learning.client_selection.knapsack import knapsack
from learning.evaluation import evaluate, lineup
from learning.play_round import play_round, reveal
from learning.policies.oracle import CriticalPrices, critical_prices
from learning.policy import Policy
from learning.seats import seat
from support.evaluation import compare
from support.tiers import examples

# ---- knapsack


def brute_force(prices, values, budget):
    """The value of the best set, and the price of the cheapest set of that value."""
    found = []
    for taken in product([0, 1], repeat=len(prices)):
        chosen = np.array(taken, dtype=bool)
        if prices[chosen].sum() <= budget:
            found.append((-int(values[chosen].sum()), int(prices[chosen].sum())))
    return min(found)


@st.composite
def problems(draw):
    items = draw(st.integers(0, 9))
    prices = draw(st.lists(st.integers(0, 20), min_size=items, max_size=items))
    values = draw(st.lists(st.integers(-3, 20), min_size=items, max_size=items))
    return np.array(prices, np.int64), np.array(values, np.float64), draw(st.integers(0, 60))


@given(problems())
def test_the_knapsack_is_exact(problem):
    prices, values, budget = problem
    chosen = knapsack(prices, values, budget)
    assert len(set(chosen.tolist())) == len(chosen)
    assert (-values[chosen].sum(), prices[chosen].sum()) == brute_force(prices, values, budget)


PRICES, VALUES = st.sampled_from([0, 1, 999_999, MICRO, 2 * MICRO]), st.sampled_from([0.1, 0.25, 0.3, 1 / 3, 0.8])


@given(st.lists(st.tuples(PRICES, VALUES), max_size=12), st.integers(0, 12))
@examples(100)
def test_no_set_that_is_left_out_early_would_have_been_returned(items, budget):
    """Against the same without a bound: of equally valuable sets, too, the same one is returned."""
    sets = [(0, 0.0, ())]
    for place, (price, value) in enumerate(items):
        more = [(cost + price, worth + value, (*own, place)) for cost, worth, own in sets]
        merged, sets = sorted([*sets, *more], key=lambda it: (it[0], -it[1])), []
        for it in merged:
            if it[0] <= budget * MICRO and (not sets or it[1] > sets[-1][1]):
                sets.append(it)
    prices, values = np.array([it[0] for it in items], dtype=np.int64), np.array([it[1] for it in items])
    assert tuple(knapsack(prices, values, budget * MICRO).tolist()) == sets[-1][2]


def test_a_large_market_is_solved():
    rng = np.random.default_rng(1)
    prices, values = rng.integers(1_000_000, 9_600_000, 60), rng.random(60)
    chosen = knapsack(prices, values, 20 * MICRO)
    assert prices[chosen].sum() <= 20 * MICRO


def test_a_hundred_thousand_clients_take_little_memory():
    rng = np.random.default_rng(1)
    prices, values = rng.integers(2_600_000, 50 * MICRO, 100_000), rng.random(100_000)
    tracemalloc.start()
    try:
        knapsack(prices, values, 20 * MICRO)
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("prices", "values"), [([-1], [1.0]), ([1], [np.nan]), ([1], [np.inf]), ([1, 2], [1.0])], ids=str
)
def test_bad_problems_are_refused(prices, values):
    with pytest.raises(ValueError, match="must"):
        knapsack(np.array(prices), np.array(values), 5)


# ---- critical prices


def offer(*wanted):
    return Offer(np.array([c for c, _ in wanted], dtype=np.int64), np.array([p for _, p in wanted], dtype=np.float64))


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        (1, [5_000_001, 4_000_001, 2_000_000]),  # above the highest rival
        (2, [3_000_001, 2_000_000, 2_000_000]),  # above the second; one rival alone is no competition
        (3, [2_000_000, 2_000_000, 2_000_000]),  # a core for everybody
    ],
)
def test_the_critical_price_tops_the_kth_rival_or_is_the_bid(cores, expected):
    bids = np.array([2 * MICRO] * 3)
    rivals = [offer((0, 5.0), (1, 4.0)), offer((0, 3.0))]
    assert critical_prices(bids, rivals, cores).tolist() == expected


def test_a_rival_that_pays_less_than_the_own_bid_does_not_raise_the_price():
    assert critical_prices(np.array([9 * MICRO]), [offer((0, 2.0))], 1).tolist() == [9 * MICRO]


def test_without_rivals_the_price_is_the_bid():
    assert critical_prices(np.array([2 * MICRO]), [], 1).tolist() == [2 * MICRO]


# ---- the policy


def test_it_buys_the_best_set_at_critical_prices(make_observation, make_context):
    # (D * 0.8) ** 2: values of 102,400, 25,600 and 57,600. A rival wants the first client.
    hidden = Privileged(np.array([400, 200, 300]), np.array([0.4, 0.4, 0.4]), {"s1": offer((0, 9.7))})
    seen = make_observation([[9.6, 4.6, 7.1]], privileged=hidden)

    def bought(budget):
        made = CriticalPrices(make_context()).act(replace(seen, budget=budget))
        return list(zip(made.clients.tolist(), made.payments.tolist(), strict=True))

    assert bought(30.0) == [(0, 9.700001), (2, 7.1), (1, 4.6)]
    assert bought(17.0) == [(0, 9.700001), (2, 7.1)]
    assert bought(9.7) == [(2, 7.1)]  # one micro-unit short of the first
    assert bought(4.5) == []


def test_everything_it_offers_is_served(make_market):
    market = make_market(["alpha", "beta", "gamma"], cores=1, rounds=5)
    policies = seat(market, {"alpha": "oracle", "beta": "hqfa", "gamma": "pacing"})
    for _ in range(5):
        report = play_round(market, policies)
        own = [row for row in report.offers if row.service == "alpha"]
        assert own
        assert {row.outcome for row in own} == {Outcome.SERVED}


def test_several_oracles_see_the_others_but_not_each_other(make_market):
    market = make_market(["alpha", "beta", "gamma"], cores=1)
    seen = {}

    class Watcher(CriticalPrices):
        def act(self, observation):
            seen[observation.service] = set(observation.privileged.rival_offers)
            return super().act(observation)

    policies = seat(market, {"alpha": "oracle", "beta": "oracle", "gamma": "lcfa"})
    policies |= {name: Watcher(policies[name].context) for name in ("alpha", "beta")}
    report = play_round(market, policies)
    assert seen == {"alpha": {"gamma"}, "beta": {"gamma"}}
    assert list(report.feedback) == ["alpha", "beta", "gamma"]


LISTS = {
    "a list": Offer([0], [19.0]),
    "too long a list": Offer([0, 10**6], [5.0, 5.0]),
    "no list": Offer([[0], [1, 2]], [2.1, 2.1]),
    "no offer": None,
}


@pytest.mark.parametrize("what", LISTS)
def test_what_is_wrong_with_a_rivals_offer_is_the_rivals_fault(make_market, what: str) -> None:
    class Lister(Policy):
        def act(self, observation):
            return LISTS[what]

    market = make_market(["alpha", "beta"], cores=1, budget=20_000_000)
    policies = seat(market, {"alpha": "oracle", "beta": "lcfa"})
    policies["beta"] = Lister(policies["beta"].context)
    if what == "a list":
        assert play_round(market, policies).services[1].wanted == 1
    else:
        with pytest.raises(OfferError) as caught:
            play_round(market, policies)
        assert caught.value.service == "beta"


def test_whoever_sees_offers_cannot_change_them(make_market) -> None:
    class Meddler(CriticalPrices):
        def act(self, observation):
            rivals = observation.privileged.rival_offers
            with pytest.raises(ValueError, match="read-only"):
                rivals["beta"].payments[:] = 0
            rivals.clear()
            return Offer.none()

    market, untouched = make_market(["alpha", "beta", "gamma"]), make_market(["alpha", "beta", "gamma"])
    policies = seat(market, {"alpha": "oracle", "beta": "lcfa", "gamma": "oracle"})
    policies["alpha"] = Meddler(policies["alpha"].context)
    others = seat(untouched, {"alpha": "lcfa", "beta": "lcfa", "gamma": "oracle"})
    others["alpha"] = type("Idle", (Policy,), {"act": lambda *_: Offer.none()})(others["alpha"].context)
    [of_beta, expected] = [
        [row for row in report.offers if row.service == "beta"]
        for report in (play_round(market, policies), play_round(untouched, others))
    ]
    assert [(row.client, row.payment) for row in of_beta] == [(row.client, row.payment) for row in expected]


def test_it_beats_every_heuristic_where_clients_are_scarce(make_market):
    names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    rivals = dict.fromkeys(names[1:], "pacing")
    others = ("d-first", "hqfa", "lcfa", "pacing", "random")
    entrants = {name: lineup(rivals | {"alpha": name}) for name in ("oracle", *others)}
    results = evaluate(lambda seed: make_market(names, seed=seed, cores=1, rounds=10), entrants, range(6))
    for name in others:
        assert compare(results, "oracle", name, service="alpha").low > 0


def test_seeing_offers_needs_privilege(make_market, make_observation):
    with pytest.raises(RunError, match="must declare privileged"):
        reveal(make_observation([[1.0]]), {}, privileged=True)

    class Peeking(Policy):
        sees_offers = True

        def act(self, observation):
            return Offer.none()

    for public in (False, True):  # everybody's data, which are not the rivals' offers
        market = make_market(["alpha"], disclosure=Disclosure(public_data=public))
        with pytest.raises(RunError, match="must declare privileged"):
            play_round(market, {"alpha": Peeking(seat(market, {"alpha": "lcfa"})["alpha"].context)})
