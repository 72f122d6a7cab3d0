"""Rounds to target, against values computed by hand: the one meaning that reports, tables and screens share."""

import numpy as np
import pytest

from learning.statistics import RoundsToTarget


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
