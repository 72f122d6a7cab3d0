"""What the networks see."""

import numpy as np
import pytest

from learning.mahdrl.features import (
    ObservationError,
    check,
    client_features,
    rival_bids,
    standardised,
    win_features,
)


def test_dqi_and_bids_are_standardised_over_the_clients(make_observation):
    features = client_features(make_observation([[2.0, 4.0, 6.0]], dqi=[0.501, 0.502, 0.503], round_=20))
    expected = np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5)
    np.testing.assert_allclose(features[:, 0], expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(features[:, 1], expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(features[:, 2], 0.25)


def test_equal_clients_are_told_apart_by_nothing():
    assert standardised(np.full(5, 0.3)).tolist() == [0.0] * 5
    assert standardised(np.array([7.0])).tolist() == [0.0]


def test_rivals_are_sorted_and_those_that_left_are_no_rivals(make_observation):
    seen = make_observation([[9.0, 9.0], [1.0, 5.0], [0.0, 0.0], [3.0, 2.0]])
    assert rival_bids(seen).tolist() == [[3.0, 5.0], [1.0, 2.0]]


def test_win_features_compare_a_price_with_rivals():
    rivals = np.array([[4.0], [2.0]])
    (low, high) = win_features(np.array([[3.0, 5.0]]), np.array([3.0]), rivals, cores=1)[0]
    np.testing.assert_allclose(low, [1.0, 1.0, 0.0, np.log(3 / 4), 2 / 3], rtol=1e-5)
    np.testing.assert_allclose(high, [0.0, 0.0, np.log(5 / 3), np.log(5 / 4), 2 / 3], rtol=1e-5)


def test_free_clients_give_finite_features():
    features = win_features(np.array([[0.0]]), np.array([0.0]), np.zeros((0, 1)), cores=2)
    assert np.isfinite(features).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"dqi": [0.1, float("nan")]},
            "service 's0', round 1: the observation's dqi of client 1 is not a finite number",
        ),
        ({"bids": [[1.0, 2.0], [float("inf"), 1.0]]}, "bids of client 0"),
        ({"budget": float("nan")}, "budget is not a finite number"),
        ({"accuracy": float("nan")}, "accuracy is not a finite number"),
    ],
)
def test_numbers_that_are_none_are_refused(make_observation, change, message):
    arguments = {"bids": [[1.0, 2.0], [3.0, 1.0]]} | change
    with pytest.raises(ObservationError, match=message):
        check(make_observation(arguments.pop("bids"), **arguments))
