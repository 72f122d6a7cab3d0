"""Statistics, against values computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning.statistics import (
    area_under_curve,
    interquartile_mean,
    kaplan_meier,
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
    assert area_under_curve([[0.2], [0.4], [0.9]]).tolist() == pytest.approx([0.5])
    assert area_under_curve([[0.2, 0.4], [0.6, 0.8]]).tolist() == pytest.approx([0.4, 0.6])
    with pytest.raises(ValueError, match="finite"):
        area_under_curve([[0.2], [np.nan]])


def test_auc_counts_from_the_arrival():
    curves = np.array([[0.1, 0.1], [0.3, 0.1], [0.5, 0.9]])
    assert area_under_curve(curves, [1, 3]).tolist() == pytest.approx([0.3, 0.9])
    assert area_under_curve([curves, curves / 2], [2, 1]) == pytest.approx(np.array([[0.4, 1.1 / 3], [0.2, 0.55 / 3]]))
