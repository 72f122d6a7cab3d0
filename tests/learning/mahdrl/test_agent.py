"""What an agent decides with: several critics, and random offers to explore."""

import numpy as np

from fl.arithmetic.streams import stream
from learning.mahdrl.agent import Brain, random_offer
from learning.mahdrl.planning import price_levels
from learning.mahdrl.settings import Settings
from learning.mahdrl.win_probability import Rivals


def test_half_of_the_clients_of_a_random_offer_are_paid_any_level_and_the_others_their_bid(make_observation):
    seen = make_observation([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0], [8.0, 9.0, 10.0]], cores=1, budget=1000.0)
    levels = price_levels(seen, Rivals.of(seen).bids)
    count = levels.shape[1]
    assert count > 2
    rng, at = np.random.default_rng(0), np.zeros(count)
    for _ in range(2000):
        offer = random_offer(seen, rng)
        for client, payment in zip(offer.clients, offer.payments, strict=True):
            at += levels[client] == payment
    expected = np.full(count, 0.5 / count)
    expected[0] += 0.5
    np.testing.assert_allclose(at / at.sum(), expected, atol=0.03)


def test_a_random_offer_at_bids_pays_bids(make_observation):
    seen = make_observation([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0], [8.0, 9.0, 10.0]], cores=1, budget=1000.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        offer = random_offer(seen, rng, payments="bid")
        assert list(offer.payments) == [seen.own_bids[client] for client in offer.clients]


def test_an_agent_with_several_critics_goes_by_their_mean(make_observation):
    brain = Brain.initial(stream(5, "test"), Settings(members=3))
    assert {name: values.shape for name, values in brain.tensors().items()} == Brain.shapes(brain.settings)
    rng = np.random.default_rng(0)
    seen = make_observation(rng.uniform(1, 9, size=(3, 20)), rng.random(20))
    each = [brain.member(index).reasons(seen).q for index in range(3)]
    assert not np.allclose(each[0], each[1])
    np.testing.assert_allclose(brain.reasons(seen).q, np.mean(each, axis=0), rtol=1e-12)
