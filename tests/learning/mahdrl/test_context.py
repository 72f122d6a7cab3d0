"""What an agent of any market knows of the one it is in: numbers without units, and a memory of the run."""

import numpy as np
import pytest

from des.records import Offer
from learning.mahdrl.brain import START, Brain
from learning.mahdrl.context import CONTEXT, context
from learning.mahdrl.learner import Learner
from learning.mahdrl.settings import Settings
from learning.mahdrl.shape import Shape
from learning.scaling import standardised

RNG = np.random.default_rng(0)
BIDS, DQI = RNG.uniform(1, 9, size=(3, 20)), RNG.random(20)


def known(seen, memory=START):
    return dict(zip(CONTEXT, context(seen, memory).tolist(), strict=True))


def test_it_has_no_units(make_observation):
    """Prices in another currency, and a DQI on another scale, are the same market."""
    here = known(make_observation(BIDS, DQI, budget=20.0))
    there = known(make_observation(100 * BIDS, 5 + 0.001 * DQI, budget=2000.0))
    assert there == pytest.approx(here, abs=1e-5)


def test_it_tells_markets_apart_by_how_dqi_goes_with_the_bids(make_observation):
    for dqi, expected in ((BIDS[0], 1.0), (-BIDS[0], -1.0), (np.ones(20), 0.0)):
        assert known(make_observation(BIDS, dqi))["agreement"] == pytest.approx(expected, abs=1e-6)
    middling = np.mean(standardised(DQI) * standardised(BIDS[0]))
    assert known(make_observation(BIDS, DQI))["agreement"] == pytest.approx(middling, abs=1e-6)


def test_scarcity_is_what_all_could_buy_over_what_there_is(make_observation):
    flat = np.full((3, 20), 2.0)  # a budget of 20 buys ten clients, for each of three services; 20 clients have 2 cores
    scarcity = known(make_observation(flat, DQI, budget=20.0, cores=2))["scarcity"]
    assert scarcity == pytest.approx(np.log(30 / 40), abs=1e-6)
    rich = make_observation(flat, DQI, budget=1e6, cores=2)  # nobody wants a client twice
    assert known(rich)["scarcity"] == pytest.approx(np.log(60 / 40), abs=1e-6)
    assert known(make_observation(flat, DQI, budget=0.0))["scarcity"] == -3.0


def test_beyond_what_was_trained_a_market_looks_like_the_nearest_that_was(make_observation):
    def of(clients):
        return known(make_observation(np.full((2, clients), 2.0), np.ones(clients)))["clients"]

    assert of(1) == of(7) < of(9) < of(79) < of(80) == pytest.approx(of(300), abs=0.01)


def test_the_agreement_is_the_mean_over_the_rounds_so_far(make_observation):
    nothing = Offer(np.zeros(0, np.int64), np.zeros(0))
    memory = START
    for dqi in (BIDS[0], -BIDS[0]):
        memory = memory.after(make_observation(BIDS, dqi), nothing, np.zeros(0, np.bool_))
    agreement = known(make_observation(BIDS, BIDS[0]), memory)["agreement"]
    assert agreement == pytest.approx((1.0 - 1.0 + 1.0) / 3, abs=1e-6)


def test_markets_without_numbers_to_divide_by(make_observation):
    for seen in (
        make_observation(np.zeros((3, 20)), DQI, budget=0.0),
        make_observation(np.zeros((1, 1)), np.zeros(1)),
        make_observation(BIDS[:1], DQI, budget=1e9),
    ):
        assert np.isfinite(context(seen, START)).all()


def played(market, learner, seen, offers):
    came = market.close_round(offers).feedback
    learner.remember(seen, offers, came)
    return came


def test_it_remembers_what_came_of_offers_and_of_this_run_alone(make_market):
    market, names = make_market(["alpha", "beta", "gamma"], cores=1, budget=100_000_000), ("alpha", "beta", "gamma")
    learner = Learner([names], [Shape(names, 20, 1, 6, dict.fromkeys(names, 100.0))], 7, Settings(context=True))
    learner.begin(1)
    seen = market.open_round()
    clients = np.arange(3)
    bids = {name: seen[name].own_bids[clients] for name in names}
    above = np.round(np.max([*bids.values()], axis=0) + 0.5, 6)
    offers = {name: Offer(clients, above if name == "alpha" else bids[name]) for name in names}
    came = played(market, learner, seen, offers)
    seen = market.open_round()
    winner, loser = (known(seen[name], learner._memories[name]) for name in ("alpha", "beta"))
    assert winner["won above bid"] == pytest.approx(4 / 5)  # three of three, shrunk towards one half
    assert winner["won at bid"] == 0.5
    assert loser["won at bid"] == pytest.approx((1 + came["beta"].won.sum()) / 5)
    learner.begin(2)
    assert known(seen["alpha"], learner._memories.get("alpha", START))["won above bid"] == 0.5


def test_what_it_remembers_changes_what_it_does(make_observation):
    brain = Brain.initial(np.random.default_rng(3), 1, Settings(context=True, budget=True))
    seen = make_observation(BIDS, DQI, budget=30.0, cores=1)
    memory = START
    before = brain.reasons(seen, memory)
    sums = memory.sums.copy()
    sums[2:4] = 200.0, 0.0  # all offers at the bid were refused
    after = brain.reasons(seen, type(memory)(sums))
    assert not np.array_equal(before.at_bid, after.at_bid)
