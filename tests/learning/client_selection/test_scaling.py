"""Values relative to those of the other clients."""

import numpy as np

from fl.arithmetic.ordered_sums import standardised
from learning.policies import ucb


def test_values_are_counted_in_standard_deviations_from_their_mean():
    np.testing.assert_allclose(standardised(np.array([2, 4, 6])), np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5))


def test_equal_values_do_not_differ_by_what_rounding_leaves():
    assert standardised(np.full(5, 0.3)).tolist() == [0.0] * 5
    assert standardised(np.full(20, 0.1)).tolist() == [0.0] * 20, "whose standard deviation is 1.4e-17"
    assert standardised(np.array([7.0])).tolist() == [0.0]


def test_the_bandit_sees_no_quality_where_all_have_the_same(make_observation):
    features = ucb.features(make_observation([[float(bid) for bid in range(1, 21)]], dqi=np.full(20, 0.1)))
    assert features[:, 1].tolist() == [0.0] * 20
