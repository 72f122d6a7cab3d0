"""The chance to be served against rivals."""

from itertools import product

import numpy as np
import pytest
import torch

from learning.mahdrl.win_probability import RIVAL_FEATURES, STANDING, Rivals, features, fewer_than, rivals_kept


def test_rivals_are_sorted_and_those_that_left_are_no_rivals(make_observation):
    rivals = Rivals.of(make_observation([[9.0, 9.0], [1.0, 5.0], [0.0, 0.0], [3.0, 2.0]]))
    assert rivals.bids.tolist() == [[3.0, 5.0], [1.0, 2.0]]
    assert rivals.highest == 9.0


def test_a_price_is_compared_with_each_rivals_bid(make_observation):
    rivals = Rivals.of(make_observation([[3.0, 8.0], [4.0, 8.0], [2.0, 8.0]]))
    standing = rivals.standing(np.array([[3.0, 5.0], [8.0, 8.0]]), most=7)
    assert standing.shape == (2, 2, 2, STANDING)
    np.testing.assert_allclose(standing[0, :, :, 0], [[0.5, 0.25], [0.5, 0.25]])  # of the highest bid, 8
    np.testing.assert_allclose(standing[0, :, :, 1], np.log([[4 / 3, 2 / 3], [4 / 5, 2 / 5]]), rtol=1e-6)


def test_what_the_network_sees_of_a_rival():
    standing = np.array([[0.5, 0.1], [0.25, -1e-7], [1.0, 0.0]], dtype=np.float32)
    seen = features(standing, np)
    assert seen.shape == (3, RIVAL_FEATURES)
    assert seen[:, 1].tolist() == [1.0, 0.0, 1.0], "a rival's bid that equals the price may outbid it"
    np.testing.assert_allclose(seen[:, 3:5], np.sin(2 * np.pi * np.array([[0.5, 1.0], [0.25, 0.5], [1, 2]])), atol=1e-6)
    exactly = torch.from_numpy(standing.astype(np.float64))  # torch's sines of a float32 are off by more than 1e-6
    np.testing.assert_allclose(features(exactly, torch), seen, atol=1e-6)


def test_in_large_markets_the_highest_bids_are_looked_at(make_observation):
    rivals = Rivals.of(make_observation([[1.0], [2.0], [4.0], [3.0]]))
    np.testing.assert_allclose(rivals.standing(np.array([[1.0]]), most=2)[0, 0, :, 0], [1.0, 0.75])
    assert [rivals_kept(3, 2), rivals_kept(20, 1), rivals_kept(20, 4), rivals_kept(1, 2)] == [2, 8, 12, 0]


def test_free_clients_have_a_finite_standing(make_observation):
    rivals = Rivals.of(make_observation([[0.0, 0.0], [0.0, 1.0]]))
    assert np.isfinite(rivals.standing(np.array([[0.0], [0.0]]), most=3)).all()


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
def test_fewer_than_k_of_independent_events(cores):
    chances = np.array([0.1, 0.5, 0.8, 0.3])
    by_hand = 0.0
    for outcome in product([0, 1], repeat=4):
        if sum(outcome) < cores:
            by_hand += np.prod(np.where(outcome, chances, 1 - chances))
    assert fewer_than(cores, chances) == pytest.approx(by_hand)
    assert fewer_than(cores, torch.from_numpy(chances)).item() == pytest.approx(by_hand)


def test_nobody_outbids_where_there_is_no_rival():
    assert fewer_than(2, np.zeros((3, 0))).tolist() == [1.0] * 3
