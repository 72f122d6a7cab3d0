"""Intervals, against tables, values computed by hand, and simulated experiments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from learning.statistics.intervals import FEWEST, Interval, holm, mean_band, mean_interval, paired_interval


@pytest.mark.parametrize(
    ("low", "high", "excludes"),
    [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False), (0.0, 0.1, False), (-0.1, 0.0, False)],
)
def test_an_interval_that_touches_zero_includes_it(low, high, excludes):
    assert Interval(estimate=0.0, low=low, high=high).excludes_zero is excludes


# ---- the mean, paired by seed


def test_the_interval_of_a_mean_by_hand():
    found = mean_interval([1.0, 2.0, 3.0])
    half = 4.302653 * 1.0 / 3**0.5  # t(0.975; 2), and a standard deviation of 1
    assert (found.estimate, found.low, found.high) == pytest.approx((2.0, 2.0 - half, 2.0 + half))
    assert (found.known, found.excludes_zero) == (True, False)


@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=20))
def test_interval_and_p_value_are_those_of_the_paired_t_test(values):
    first, second = np.array(values), np.arange(len(values)) ** 2.0
    if np.ptp(first - second) < 1e-6:
        return
    expected = stats.ttest_rel(first, second)
    ends = expected.confidence_interval()
    found = paired_interval(first, second)
    assert (found.low, found.high, found.p) == pytest.approx((ends.low, ends.high, expected.pvalue), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [[1.0, 2.0, 3.0]] * 2, [[1.0, 2.0]] * 5])
def test_fewer_than_three_seeds_of_a_kind_have_no_interval(values):
    assert FEWEST == 3
    found = mean_interval(values)
    assert found.estimate == np.mean(values)
    assert not found.known
    assert not found.excludes_zero
    assert np.isnan([found.low, found.high, found.p]).all()


def test_of_a_constant_difference_only_the_sign_is_tested():
    first = np.array([[0.5, 0.75, 0.875], [0.625, 0.75, 0.875], [0.25, 0.5, 0.75]])
    found = paired_interval(first, first - 0.125)
    assert (found.estimate, found.low, found.high, found.p) == (0.125, 0.125, 0.125, 0.25)
    assert paired_interval([3.0] * 6, [1.0] * 6).p == 2 / 2**6  # all six positive, or all six negative
    same = paired_interval(first, first)
    assert (same.low, same.high, same.p) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("seeds", [3, 6, 7, 12, 20])
@pytest.mark.parametrize("one", [0.1, 1 / 3, 2.0875, 1e-3])
@pytest.mark.parametrize("shared", [0.0, 0.7, 12_345.678901])
def test_a_constant_difference_is_one_however_its_numbers_are_rounded(seeds: int, one: float, shared: float):
    second = shared * np.linspace(1, 2, seeds)
    found = paired_interval(second + one, second)
    assert found.p == 2.0 ** (1 - seeds)
    assert found.low == found.high == found.estimate == pytest.approx(one)
    crossed = paired_interval(second + one + np.zeros((seeds, 1)), np.tile(second, (seeds, 1)))
    assert crossed.p == 2.0 ** (1 - seeds)


def test_pairing_removes_what_the_seeds_share():
    hard_and_easy = np.linspace(0, 1, 10)
    found = paired_interval(hard_and_easy + 0.01, hard_and_easy)
    assert found.low == pytest.approx(0.01)


# ---- training seeds crossed with market seeds


def test_many_runs_of_few_agents_are_few_agents():
    """Three agents that differ, in 50 markets each: the interval is that of three values, not of 150."""
    first = np.repeat([[0.0], [1.0], [2.0]], 50, axis=1)
    found = paired_interval(first, np.zeros((3, 50)))
    three = mean_interval([0.0, 1.0, 2.0])
    assert (found.low, found.high) == pytest.approx((three.low, three.high))


def test_many_runs_in_few_markets_are_few_markets():
    found = paired_interval(np.repeat([[0.0, 1.0, 2.0]], 50, axis=0), np.zeros((50, 3)))
    three = mean_interval([0.0, 1.0, 2.0])
    assert (found.low, found.high) == pytest.approx((three.low, three.high))


def test_the_variance_is_that_of_a_two_way_layout_by_hand():
    values = np.array([[1.0, 2.0, 6.0], [2.0, 3.0, 4.0], [3.0, 7.0, 8.0]])
    # Means of rows 3, 3, 6, of columns 2, 4, 6, of all 4: sums of squares 18 and 24, and 6 of 48 are left.
    training, market, rest = 18 / 2, 24 / 2, 6 / 4
    total = training + market - rest
    freedom = total**2 / (training**2 / 2 + market**2 / 2 + rest**2 / 4)
    half = stats.t.ppf(0.975, freedom) * (total / 9) ** 0.5
    found = paired_interval(values, np.zeros((3, 3)))
    assert (found.low, found.high) == pytest.approx((4 - half, 4 + half))


def test_a_policy_without_training_seeds_meets_every_trained_one():
    trained = np.array([[1.0, 2.0, 4.0], [3.0, 4.0, 4.0], [0.0, 1.0, 2.0]])
    heuristic = np.array([1.0, 1.0, 3.0])
    found = paired_interval(trained, heuristic)
    assert found == paired_interval(trained, np.array([heuristic] * 3))
    back = paired_interval(heuristic, trained)
    assert (back.estimate, back.low, back.high) == pytest.approx((-found.estimate, -found.high, -found.low))


@pytest.mark.parametrize("shape", [(3,), (10,), (3, 10), (5, 20)])
def test_intervals_cover_the_truth_about_as_often_as_they_say(shape):
    """``benchmarks/coverage.py`` measures it more closely, and beside the percentile bootstrap."""
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(1_000):
        values = rng.normal(size=shape)
        if len(shape) == 2:
            values += rng.normal(size=(shape[0], 1)) + rng.normal(size=shape[1])
        found = mean_interval(values)
        covered.append(found.low <= 0 <= found.high)
    assert 0.93 <= np.mean(covered) <= 0.98


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ([1, 2], [1, 2, 3], "cannot be paired by seed"),
        (np.ones((2, 3)), np.ones((3, 3)), "cannot be paired by seed"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), "cannot be paired by seed"),
        ([1, np.nan], [1, 2], "first must hold only finite numbers"),
        ([], [], "must not be empty"),
    ],
)
def test_what_cannot_be_compared_is_refused(first, second, problem):
    with pytest.raises(ValueError, match=problem):
        paired_interval(first, second)


# ---- curves


def test_a_band_is_the_interval_at_each_point():
    runs = np.array([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]])
    mean, low, high = mean_band(runs)
    for at, column in enumerate(runs.T):
        found = mean_interval(column)
        assert (mean[at], low[at], high[at]) == pytest.approx((found.estimate, found.low, found.high))
    mean, low, high = mean_band(runs[:2])
    assert mean.tolist() == [1.5, 5.0]
    assert np.isnan([low, high]).all()


# ---- several tests at once


def test_holm_by_hand():
    adjusted = holm([0.01, 0.04, float("nan"), 0.03, 0.005])
    assert np.isnan(adjusted.pop(2))
    # Four tests: 4 x .005, 3 x .01, 2 x .03; 1 x .04 is not below the one before.
    assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), max_size=10))
def test_holm_lies_between_no_correction_and_bonferronis(p_values):
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        assert p <= adjusted <= min(1.0, len(p_values) * p) or adjusted == pytest.approx(p)
