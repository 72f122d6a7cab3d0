"""Credit by hand."""

import numpy as np

from learning.mahdrl.credit import Baseline, Sizes, advantages, differences, progress


def test_progress_is_bounded_where_nothing_is_wrong_any_more():
    np.testing.assert_allclose(progress([0.0, 0.9, 1.0]), [0.0, np.log(10), np.log(1e4)])


def test_the_next_rounds_are_averaged_and_cut_at_the_end():
    d = np.array([1.0, 2.0, 3.0, 4.0])
    found = advantages(d, np.ones(4), horizon=2, scale=3.0)
    np.testing.assert_allclose(found, 3.0 * np.array([1.5, 2.5, 3.5, 4.0]))


def test_a_deviation_counts_as_much_as_the_error_that_is_left():
    d, error = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25, 0.25])
    found = advantages(d, error, horizon=2, scale=1.0)
    np.testing.assert_allclose(found, [(0.5 * 1 + 0.25 * 2) / 0.75, 2.5, 3.0])


def test_the_usual_error_of_a_round():
    baseline = Baseline(services=1, rounds=2)
    baseline.deviations(0, progress([0.5, 0.9]))
    np.testing.assert_allclose(baseline.errors(0), [0.5, 0.1])


def test_differences_take_off_what_the_others_met_too():
    found = differences({"a": np.array([1.0, 2.0, 5.0]), "b": np.array([3.0, 2.0]), "c": None})
    np.testing.assert_allclose(found["a"], [1.0 - 3.0, 2.0 - 2.0, 5.0])  # nobody else was left in the third round
    np.testing.assert_allclose(found["b"], [2.0, 0.0])
    assert found["c"] is None


def test_a_service_alone_keeps_its_own():
    np.testing.assert_allclose(differences({"a": np.array([1.0, 2.0])})["a"], [1.0, 2.0])


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


def test_gains_are_in_units_of_their_usual_size_and_at_most_three_of_them():
    sizes = Sizes(2)
    assert sizes.scaled(1, np.array([0.3, -0.3])).tolist() == [1.0, -1.0]
    # The mean of the mean squares .09 and .27.
    np.testing.assert_allclose(sizes.scaled(1, np.array([0.9, *np.zeros(2)])), [0.9 / 0.18**0.5, 0.0, 0.0])
    # Ten times as large as usual.
    assert sizes.scaled(0, np.array([1.0, *np.zeros(99)])).max() == 3.0
