"""What the networks see."""

import numpy as np

from learning.mahdrl.features import client_features, means


def test_dqi_and_bids_are_standardised_over_the_clients(make_observation):
    features = client_features(make_observation([[2.0, 4.0, 6.0]], dqi=[0.501, 0.502, 0.503], round_=20))
    expected = np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5)
    np.testing.assert_allclose(features[:, 0], expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(features[:, 1], expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(features[:, 2], 0.25)


def test_what_the_budget_can_buy(make_observation):
    features = client_features(make_observation([[2.0, 4.0, 6.0]], budget=20.0))
    np.testing.assert_allclose(features[:, 3], np.log(5.0), rtol=1e-6)
    assert means(make_observation([[0.0, 0.0]], budget=20.0)) == 3.0
    assert means(make_observation([[2.0, 4.0]], budget=0.0)) == -3.0


def test_features_as_they_come(make_observation):
    seen = make_observation([[2.0, 4.0, 6.0]], dqi=[0.501, 0.502, 0.503], budget=20.0, round_=20)
    assert client_features(seen, budget=False)[:, 3].tolist() == [0.0] * 3
    features = client_features(seen, standardise=False, schedule=False)
    np.testing.assert_allclose(features[:, 0], [0.501, 0.502, 0.503])
    np.testing.assert_allclose(features[:, 1], [0.1, 0.2, 0.3])
    assert features[:, 2].tolist() == [0.0] * 3
