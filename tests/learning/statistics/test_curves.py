"""Statistics of learning curves, and the probability of improvement, against values computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning.statistics import RoundsToTarget, area_under_curve, probability_of_improvement

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


# ---- AUC


def test_numbers_that_differ_in_their_rounding_alone_are_a_tie():
    assert probability_of_improvement([0.1 + 0.2, 1.0], [0.3, 1.0]) == 0.5


def test_auc_is_the_mean_accuracy():
    assert area_under_curve([[0.2], [0.4], [0.9]]).tolist() == pytest.approx([0.5])
    assert area_under_curve([[0.2, 0.4], [0.6, 0.8]]).tolist() == pytest.approx([0.4, 0.6])
    with pytest.raises(ValueError, match="finite"):
        area_under_curve([[0.2], [np.nan]])


def test_auc_counts_from_the_arrival():
    curves = np.array([[0.1, 0.1], [0.3, 0.1], [0.5, 0.9]])
    assert area_under_curve(curves, [1, 3]).tolist() == pytest.approx([0.3, 0.9])
    assert area_under_curve([curves, curves / 2], [2, 1]) == pytest.approx(np.array([[0.4, 1.1 / 3], [0.2, 0.55 / 3]]))
    assert area_under_curve(curves[:2], [1, 3]).tolist() == pytest.approx([0.2, 0.1])  # has not arrived yet


def test_rounds_that_are_not_equally_long_count_as_long_as_they_last():
    curves = np.array([[0.2, 0.0], [0.4, 0.5], [0.9, 0.8], [0.9, 0.8]])
    lengths = np.array([0.5, 1.0, 0.25, 0.0])
    expected = [(0.1 + 0.4 + 0.225) / 1.75, (0.5 + 0.2) / 1.25]
    assert area_under_curve(curves, [1, 2], lengths).tolist() == pytest.approx(expected)
    assert area_under_curve(curves, [4, 9], lengths).tolist() == pytest.approx([0.9, 0.8])  # behind the last one


def test_rounds_to_target_counts_from_one_and_censors_at_the_last_round():
    curves = [[0.1, 0.5, 0.9, 0.8], [0.95, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.89], [0.1, 0.2, 0.3, 0.9]]
    rounds, reached = RoundsToTarget.of_curves(curves, 0.9)
    assert rounds.tolist() == [3, 1, 4, 4]
    assert reached.tolist() == [True, True, False, True]


def test_every_service_has_its_own_target():
    curves = [[[0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.5, 0.6, 0.7]]]
    rounds, reached = RoundsToTarget.of_curves(curves, [0.5, 0.6, 0.7, 0.8])
    assert rounds.tolist() == [[1, 2, 3, 3]]
    assert reached.tolist() == [[True, True, True, False]]


def test_the_rounds_may_be_known_already():
    found = RoundsToTarget.of([3, None, 4], horizon=4)
    assert found.rounds.tolist() == [3, 4, 4]
    assert found.reached.tolist() == [True, False, True]


def test_runs_are_stacked():
    found = RoundsToTarget.stack([RoundsToTarget.of([1, None], 4), RoundsToTarget.of([2, 3], 4)])
    assert found.rounds.tolist() == [[1, 4], [2, 3]]
    assert found.reached.tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize(
    ("rounds", "mean", "text"),
    [
        ([7], 7.0, "7.0"),
        ([10, 20, 60], 30.0, "30.0"),
        ([10, 20, None], (10 + 20 + 80) / 3, "> 36.7 (2 of 3)"),
        ([80, None], 80.0, "> 80.0 (1 of 2)"),
        ([None], 80.0, "never"),
        ([None, None], 80.0, "never"),
    ],
)
def test_the_mean_counts_every_run_and_its_text_says_where_it_is_a_lower_bound(rounds, mean, text):
    """A mean over the runs that succeeded would call [10, 20, None] better than [10, 20, 60]."""
    found = RoundsToTarget.of(rounds, horizon=80)
    assert found.mean() == pytest.approx(mean)
    assert found.text() == text


def test_no_rounds_and_accuracies_that_are_none_are_refused():
    with pytest.raises(ValueError, match="at least one round"):
        RoundsToTarget.first(np.empty((2, 0)))
    with pytest.raises(ValueError, match="accuracy must not be empty"):
        RoundsToTarget.of_curves([], 0.5)
    with pytest.raises(ValueError, match="accuracy must hold only finite numbers"):
        RoundsToTarget.of_curves([0.1, np.nan], 0.5)
