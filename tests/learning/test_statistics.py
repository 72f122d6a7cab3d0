"""Statistics, against values computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning.statistics import (
    Interval,
    area_under_curve,
    interquartile_mean,
    kaplan_meier,
    paired_bootstrap,
    probability_of_improvement,
    restricted_mean,
)

# ---- interquartile mean


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3, 100], 2.5),  # 1 and 100 are left out
        ([8, 1, 2, 3, 4, 5, 6, 7], 4.5),  # 3, 4, 5, 6
        ([1, 2, 3, 4, 100], 3.0),  # floor(5 / 4) = 1 from each end
        ([1, 2, 6], 3.0),  # too few to leave any out
        ([[1, 2], [3, 100]], 2.5),
    ],
)
def test_interquartile_mean(values, expected):
    assert interquartile_mean(values) == pytest.approx(expected)


# ---- probability of improvement


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2], [0, 0.5], 1.0),
        ([0], [1], 0.0),
        ([1], [1], 0.5),
        ([1, 3], [2, 2], 0.5),
        ([1, 2, 3], [2], 0.5),  # (0 + 1/2 + 1) / 3
        ([3, 4, 1, 1], [2, 2, 3], 5.5 / 12),  # 3: 2.5, 4: 3, 1: 0, 1: 0 of 3 each
    ],
)
def test_probability_of_improvement(first, second, expected):
    assert probability_of_improvement(first, second) == pytest.approx(expected)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_improving_and_being_improved_on_exclude_each_other(first, second):
    both = probability_of_improvement(first, second) + probability_of_improvement(second, first)
    assert both == pytest.approx(1.0)


# ---- paired bootstrap


def test_a_constant_difference_is_certain():
    first = np.array([[0.5, 0.7, 0.9], [0.6, 0.8, 0.95]])
    found = paired_bootstrap(first, first - 0.1, resamples=200)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert found.excludes_zero


def test_two_market_seeds_give_the_interval_of_a_binomial():
    # Differences 0 and 1: a resample's mean is 0, 1/2 or 1 with probability 1/4, 1/2, 1/4.
    found = paired_bootstrap([0.0, 1.0], [0.0, 0.0], level=0.4, resamples=4000)
    assert found == Interval(estimate=0.5, low=0.5, high=0.5, level=0.4)
    wide = paired_bootstrap([0.0, 1.0], [0.0, 0.0], level=0.9, resamples=4000)
    assert (wide.low, wide.high) == (0.0, 1.0)
    assert not wide.excludes_zero


@pytest.mark.parametrize(
    ("low", "high", "excludes"),
    [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False), (0.0, 0.1, False), (-0.1, 0.0, False)],
)
def test_an_interval_that_touches_zero_includes_it(low, high, excludes):
    assert Interval(estimate=0.0, low=low, high=high, level=0.95).excludes_zero is excludes


def test_training_seeds_are_resampled_as_a_whole():
    """Two agents, one 1 better and one no better, in 50 markets each: 100 runs, but only two agents."""
    first = np.repeat([[0.0], [1.0]], 50, axis=1)
    found = paired_bootstrap(first, np.zeros((2, 50)), resamples=2000)
    assert (found.low, found.high) == (0.0, 1.0)
    as_if_independent = paired_bootstrap(first.ravel(), np.zeros(100), resamples=2000)
    assert 0.35 < as_if_independent.low < as_if_independent.high < 0.65


def test_market_seeds_are_resampled_as_a_whole_too():
    first = np.repeat([[0.0, 1.0]], 50, axis=0)
    found = paired_bootstrap(first, np.zeros((50, 2)), resamples=2000)
    assert (found.low, found.high) == (0.0, 1.0)


def test_pairing_removes_what_the_seeds_share():
    hard_and_easy = np.linspace(0, 1, 10)
    found = paired_bootstrap(hard_and_easy + 0.01, hard_and_easy)
    assert found.low == pytest.approx(0.01)


def test_a_policy_without_training_seeds_meets_every_trained_one():
    trained = np.array([[1.0, 2.0], [3.0, 4.0]])
    heuristic = np.array([1.0, 1.0])
    found = paired_bootstrap(trained, heuristic, resamples=500)
    assert found.estimate == pytest.approx(1.5)
    assert found == paired_bootstrap(trained, np.array([heuristic, heuristic]), resamples=500)
    back = paired_bootstrap(heuristic, trained, resamples=500)
    assert back.estimate == pytest.approx(-1.5)


def test_the_statistic_can_be_the_interquartile_mean():
    first = np.array([0.0, 1.0, 1.0, 50.0])
    found = paired_bootstrap(first, np.zeros(4), statistic=interquartile_mean, resamples=200)
    assert found.estimate == 1.0
    # Two of eight are left out at each end: three times the outlier is drawn in 7 % of the resamples.
    outlier = np.array([1.0] * 7 + [1000.0])
    found = paired_bootstrap(outlier, np.zeros(8), statistic=interquartile_mean, level=0.8, resamples=2000)
    assert found == Interval(estimate=1.0, low=1.0, high=1.0, level=0.8)


def test_the_fast_way_for_the_mean_is_the_mean_of_each_resample():
    rng = np.random.default_rng(2)
    first, second = rng.random((3, 8)), rng.random((3, 8))
    fast = paired_bootstrap(first, second, resamples=300)
    slow = paired_bootstrap(first, second, statistic=lambda values: float(values.mean()), resamples=300)
    assert (fast.estimate, fast.low, fast.high) == pytest.approx((slow.estimate, slow.low, slow.high))


def test_the_same_seed_gives_the_same_interval():
    rng = np.random.default_rng(0)
    first, second = rng.random((3, 8)), rng.random((3, 8))
    assert paired_bootstrap(first, second, seed=4, resamples=300) == paired_bootstrap(
        first, second, seed=4, resamples=300
    )
    assert paired_bootstrap(first, second, seed=4, resamples=300) != paired_bootstrap(
        first, second, seed=5, resamples=300
    )


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = [
        found.low <= 0 <= found.high
        for found in (paired_bootstrap(rng.normal(size=30), np.zeros(30), resamples=200) for _ in range(200))
    ]
    assert 0.88 <= np.mean(covered) <= 1.0


@pytest.mark.parametrize(
    ("first", "second", "options", "problem"),
    [
        ([1, 2], [1, 2, 3], {}, "cannot be paired by seed"),
        (np.ones((2, 3)), np.ones((3, 3)), {}, "cannot be paired by seed"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), {}, "cannot be paired by seed"),
        ([1, np.nan], [1, 2], {}, "first must hold only finite numbers"),
        ([], [], {}, "must not be empty"),
        ([1], [1], {"level": 1.0}, "level"),
        ([1], [1], {"level": float("nan")}, "level"),
        ([1], [1], {"resamples": 0}, "resamples"),
    ],
)
def test_what_cannot_be_compared_is_refused(first, second, options, problem):
    with pytest.raises(ValueError, match=problem):
        paired_bootstrap(first, second, **options)


# ---- Kaplan-Meier


def test_kaplan_meier_by_hand():
    # Met in rounds 1, 3, 3; censored in 2 and 4. At risk: 5 in round 1, 3 in round 3.
    times, survival = kaplan_meier([1, 2, 3, 3, 4], [True, False, True, True, False])
    assert times.tolist() == [1, 3]
    assert survival.tolist() == pytest.approx([4 / 5, 4 / 5 * 1 / 3])


def test_a_run_censored_in_a_round_is_at_risk_in_it():
    _, survival = kaplan_meier([2, 2], [True, False])
    assert survival.tolist() == [0.5]


def test_restricted_mean_by_hand():
    # Survival 1 until round 1, 4/5 until 3, 4/15 until 10.
    found = restricted_mean([1, 2, 3, 3, 4], [True, False, True, True, False], horizon=10)
    assert found == pytest.approx(1 + 2 * 4 / 5 + 7 * 4 / 15)


def test_without_censoring_it_is_the_mean():
    assert restricted_mean([10, 20, 60], [True, True, True], horizon=80) == pytest.approx(30)


def test_runs_censored_at_the_horizon_count_with_the_horizon():
    assert restricted_mean([20, 80], [True, False], horizon=80) == pytest.approx(50)
    assert restricted_mean([80, 80], [False, False], horizon=80) == pytest.approx(80)


def test_targets_met_after_the_horizon_count_with_the_horizon():
    assert restricted_mean([20, 90], [True, True], horizon=80) == pytest.approx(50)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_censored_at_the_horizon_alone_it_is_the_mean_of_what_was_seen(rounds):
    seen = np.minimum(rounds, 20)
    expected = seen.mean()
    assert restricted_mean(seen, np.array(rounds) <= 20, horizon=20) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rounds", "reached", "horizon", "problem"),
    [
        ([1, 2], [True], 10, "rounds and reached must be lists of the same length"),
        ([0], [True], 10, "positive"),
        ([], [], 10, "empty"),
        ([1], [True], 0, "horizon must be a finite number above 0, not 0"),
        ([1], [True], float("nan"), "horizon"),
        ([float("nan")], [True], 10, "finite"),
    ],
)
def test_bad_survival_data_are_refused(rounds, reached, horizon, problem):
    with pytest.raises(ValueError, match=problem):
        restricted_mean(rounds, reached, horizon)


# ---- AUC


def test_auc_is_the_mean_accuracy():
    assert area_under_curve([0.2, 0.4, 0.9]) == pytest.approx(0.5)
    assert area_under_curve([[0.2, 0.4], [0.6, 0.8]], axis=0).tolist() == pytest.approx([0.4, 0.6])
    with pytest.raises(ValueError, match="finite"):
        area_under_curve([0.2, np.nan])
