"""An agent's view: a round's clients, the chance to be served against rivals, the context, and what it knew."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from des.observation import Offer
from fl.arithmetic.ordered_sums import standardised
from fl.surrogate import fits
from fl.surrogate.fitted import read
from fl.surrogate.learning_curves import Curve
from learning.mahdrl.market_model import (
    CONTEXT,
    NUMBERS,
    RIVAL_FEATURES,
    STANDING,
    START,
    ActiveRivals,
    client_features,
    context,
    fewer_than,
    knowledge,
    purchasing_power,
    rival_features,
    rivals_kept,
)
from support.curves import CURVE

RNG = np.random.default_rng(0)
BIDS, DQI = RNG.uniform(1, 9, size=(3, 20)), RNG.random(20)


def test_dqi_and_bids_are_standardised_over_the_clients(make_observation):
    seen = make_observation([[2.0, 4.0, 6.0]], dqi=[0.501, 0.502, 0.503], budget=20.0, round_=20)
    spread = np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5)
    expected = np.stack([spread, spread, np.full(3, 0.25), np.full(3, np.log(5.0))], axis=1)
    np.testing.assert_allclose(client_features(seen), expected, rtol=1e-4, atol=1e-6)
    assert client_features(seen, budget=False)[:, 3].tolist() == [0.0] * 3


def test_what_a_budget_can_buy_is_bounded(make_observation):
    assert purchasing_power(make_observation([[0.0, 0.0]], budget=20.0)) == 3.0
    assert purchasing_power(make_observation([[2.0, 4.0]], budget=0.0)) == -3.0


def test_rivals_are_sorted_and_those_that_left_are_no_rivals(make_observation):
    rivals = ActiveRivals.of(make_observation([[9.0, 9.0], [1.0, 5.0], [0.0, 0.0], [3.0, 2.0]]))
    assert rivals.bids.tolist() == [[3.0, 5.0], [1.0, 2.0]]
    assert rivals.highest == 9.0


def test_a_price_is_compared_with_each_rivals_bid(make_observation):
    rivals = ActiveRivals.of(make_observation([[3.0, 8.0], [4.0, 8.0], [2.0, 8.0]]))
    standing = rivals.standing(np.array([[3.0, 5.0], [8.0, 8.0]]), most=7)
    assert standing.shape == (2, 2, 2, STANDING)
    np.testing.assert_allclose(standing[0, :, :, 0], [[0.5, 0.25], [0.5, 0.25]])  # of the highest bid, 8
    np.testing.assert_allclose(standing[0, :, :, 1], np.log([[4 / 3, 2 / 3], [4 / 5, 2 / 5]]), rtol=1e-6)


def test_what_the_network_sees_of_a_rival():
    standing = np.array([[0.5, 0.1], [0.25, -1e-7], [1.0, 0.0]], dtype=np.float32)
    seen = rival_features(standing, np)
    assert seen.shape == (3, RIVAL_FEATURES)
    assert seen[:, 1].tolist() == [1.0, 0.0, 1.0], "a rival's bid that equals the price may outbid it"
    np.testing.assert_allclose(seen[:, 3:5], np.sin(2 * np.pi * np.array([[0.5, 1.0], [0.25, 0.5], [1, 2]])), atol=1e-6)
    exactly = torch.from_numpy(standing.astype(np.float64))  # torch's sines of a float32 are off by more than 1e-6
    np.testing.assert_allclose(rival_features(exactly, torch), seen, atol=1e-6)


def test_in_large_markets_the_highest_bids_are_looked_at(make_observation):
    rivals = ActiveRivals.of(make_observation([[1.0], [2.0], [4.0], [3.0]]))
    np.testing.assert_allclose(rivals.standing(np.array([[1.0]]), most=2)[0, 0, :, 0], [1.0, 0.75])
    assert [rivals_kept(3, 2), rivals_kept(20, 1), rivals_kept(20, 4), rivals_kept(1, 2)] == [2, 8, 12, 0]


def test_free_clients_have_a_finite_standing(make_observation):
    rivals = ActiveRivals.of(make_observation([[0.0, 0.0], [0.0, 1.0]]))
    assert np.isfinite(rivals.standing(np.array([[0.0], [0.0]]), most=3)).all()


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
def test_fewer_than_k_of_independent_events(cores):
    chances = np.array([0.1, 0.5, 0.8, 0.3])
    outcomes = np.array([it for it in product([0, 1], repeat=4) if sum(it) < cores])
    by_hand = np.where(outcomes, chances, 1 - chances).prod(axis=1).sum()
    assert fewer_than(cores, chances) == pytest.approx(by_hand)
    assert fewer_than(cores, torch.from_numpy(chances)).item() == pytest.approx(by_hand)


def test_without_rivals_an_offer_is_sure():
    assert fewer_than(2, np.zeros((3, 0))).tolist() == [1.0] * 3


def known(seen, memory=START):
    return dict(zip(CONTEXT, context(seen, memory).tolist(), strict=True))


def test_it_has_no_units(make_observation):
    """Prices in another currency, and a DQI on another scale, are the same market."""
    here = known(make_observation(BIDS, DQI, budget=20.0))
    there = known(make_observation(100 * BIDS, 5 + 0.001 * DQI, budget=2000.0))
    assert there == pytest.approx(here, abs=1e-5)


def test_it_tells_markets_apart_by_how_dqi_goes_with_the_bids(make_observation):
    middling = np.mean(standardised(DQI) * standardised(BIDS[0]))
    for dqi, expected in ((BIDS[0], 1.0), (-BIDS[0], -1.0), (np.ones(20), 0.0), (DQI, middling)):
        assert known(make_observation(BIDS, dqi))["agreement"] == pytest.approx(expected, abs=1e-6)


def test_scarcity_is_what_all_could_buy_over_what_there_is(make_observation):
    flat = np.full((3, 20), 2.0)  # a budget of 20 buys ten clients, for each of three services; 20 clients have 2 cores
    scarcity = known(make_observation(flat, DQI, budget=20.0, cores=2))["scarcity"]
    assert scarcity == pytest.approx(np.log(30 / 40), abs=1e-6)
    rich = make_observation(flat, DQI, budget=1e6, cores=2)  # no service wants a client twice
    assert known(rich)["scarcity"] == pytest.approx(np.log(60 / 40), abs=1e-6)
    assert known(make_observation(flat, DQI, budget=0.0))["scarcity"] == -3.0


def test_beyond_what_was_trained_a_market_looks_like_the_nearest_that_was(make_observation):
    def of(clients):
        return known(make_observation(np.full((2, clients), 2.0), np.ones(clients)))["clients"]

    assert of(1) == of(7) < of(9) < of(79) < of(80) == pytest.approx(of(300), abs=0.01)


def test_the_agreement_is_the_mean_over_the_rounds_so_far(make_observation):
    memory = START
    for dqi in (BIDS[0], -BIDS[0]):
        memory = memory.after(make_observation(BIDS, dqi), Offer.none(), np.zeros(0, np.bool_))
    agreement = known(make_observation(BIDS, BIDS[0]), memory)["agreement"]
    assert agreement == pytest.approx((1.0 - 1.0 + 1.0) / 3, abs=1e-6)


def test_what_came_of_offers_is_remembered(make_observation):
    seen = make_observation([[1.0, 2.0, 3.0], [4.0, 2.0, 4.0]], cores=1)
    offer = Offer(np.array([0, 1, 2]), np.array([1.0, 2.5, 3.5]))
    now = known(seen, START.after(seen, offer, np.array([False, True, True])))
    assert now["won at bid"] == pytest.approx(1 / 3)  # none of one, shrunk towards one half
    assert now["won above bid"] == pytest.approx(3 / 4)  # two of two
    assert now["keenness"] == pytest.approx((1 + 1) / 3 - (1.5 + 1) / 4)  # 4/4 where it lost, 2/4 and 4/4 where it won


def test_markets_without_numbers_to_divide_by(make_observation):
    for seen in (
        make_observation(np.zeros((3, 20)), DQI, budget=0.0),
        make_observation(np.zeros((1, 1)), np.zeros(1)),
        make_observation(BIDS[:1], DQI, budget=1e9),
    ):
        assert np.isfinite(context(seen, START)).all()


def test_nothing_is_known_of_a_data_set_that_was_never_trained_on():
    assert knowledge(None).tolist() == [0.0] * len(NUMBERS)


def test_curves_that_come_with_flmarket_are_told_apart_and_fill_the_ranges():
    shipped = read(Path(fits.__file__).with_name("surrogate.json"))
    numbers = np.array([knowledge(Curve.of(fit.parameters)) for fit in shipped])
    assert (numbers[:, 0] == 1.0).all()
    assert len(np.unique(numbers, axis=0)) == len(shipped)
    assert (numbers[:, 1:].max(axis=0) > 0.75).all()
    assert (numbers[:, 1:].min(axis=0) < -0.75).all()


def test_a_curve_beyond_them_looks_like_the_nearest_and_noise_is_not_known():
    assert knowledge(replace(CURVE, step_emd=-99.0)).tolist() == knowledge(replace(CURVE, step_emd=-0.75)).tolist()
    assert knowledge(CURVE).tolist() == knowledge(CURVE.noiseless()).tolist()
