"""Values relative to those of the other clients."""

import numpy as np
import pytest

from learning import bandit
from learning.scaling import standardised, standardised_rows


def test_values_are_counted_in_standard_deviations_from_their_mean():
    np.testing.assert_allclose(standardised(np.array([2, 4, 6])), np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5))


def test_equal_values_do_not_differ_by_what_rounding_leaves():
    assert standardised(np.full(5, 0.3)).tolist() == [0.0] * 5
    assert standardised(np.full(20, 0.1)).tolist() == [0.0] * 20, "whose standard deviation is 1.4e-17"
    assert standardised(np.array([7.0])).tolist() == [0.0]


@pytest.mark.parametrize("size", [1e-3, 1.0, 60.0, 1e6, 1e9 / 3])
@pytest.mark.parametrize(("gap", "differ"), [(0.0, False), (1e-15, False), (1e-4, True)])
def test_one_market_and_many_agree_on_what_is_equal(size: float, gap: float, differ: bool):
    """Both give zeros, or the same up to the order of their sums, whatever the unit of the values."""
    values = np.full(49, size)
    values[0] += gap * max(1.0, size)
    one = standardised(values)
    np.testing.assert_allclose(standardised_rows(values[None], np.ones((1, 49), dtype=bool))[0], one, rtol=1e-6)
    assert one.any() == differ


def test_the_bandit_sees_no_quality_where_all_have_the_same(make_observation):
    features = bandit.features(make_observation([[float(bid) for bid in range(1, 21)]], dqi=np.full(20, 0.1)))
    assert features[:, 1].tolist() == [0.0] * 20
