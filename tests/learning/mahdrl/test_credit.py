"""Credit by hand."""

import numpy as np

from learning.mahdrl.credit import Baseline, advantages, progress


def test_progress_is_bounded_where_nothing_is_wrong_any_more():
    np.testing.assert_allclose(progress([0.0, 0.9, 1.0]), [0.0, np.log(10), np.log(1e4)])


def test_the_next_rounds_are_averaged_and_cut_at_the_end():
    d = np.array([1.0, 2.0, 3.0, 4.0])
    found = advantages(d, horizon=2, window=0, control=0.0, scale=3.0)
    np.testing.assert_allclose(found, 3.0 * np.array([1.5, 2.5, 3.5, 4.0]))


def test_what_was_ahead_before_is_taken_off():
    d = np.array([1.0, 2.0, 3.0, 4.0])
    found = advantages(d, horizon=1, window=2, control=0.5, scale=1.0)
    np.testing.assert_allclose(found, [1.0, 2.0 - 0.5 * 1.0, 3.0 - 0.5 * 1.5, 4.0 - 0.5 * 2.5])


def test_the_baseline_is_the_mean_of_earlier_episodes():
    baseline = Baseline(services=2, rounds=3)
    assert baseline.deviations(0, np.array([1.0, 2.0, 3.0])) is None
    np.testing.assert_allclose(baseline.deviations(0, np.array([3.0, 2.0, 3.0])), [2.0, 0.0, 0.0])
    np.testing.assert_allclose(baseline.mean, [[2.0, 2.0, 3.0], [0.0, 0.0, 0.0]])


def test_a_service_that_left_is_held_in_the_baseline():
    baseline = Baseline(services=1, rounds=3)
    baseline.deviations(0, np.array([1.0, 5.0]))
    np.testing.assert_allclose(baseline.mean[0], [1.0, 5.0, 5.0])
    assert len(baseline.deviations(0, np.array([2.0]))) == 1
