"""Runs that differ in their seed alone: means, intervals, and differences paired by seed."""

from collections.abc import Callable

import numpy as np
import pytest

from learning.statistics.intervals import paired_interval
from scenarios.logs.run_state import RunState
from tui.state.compared_runs import band_series, compare, difference_series, groups, mean_series
from tui.state.watched_run import Session

Play = Callable[..., Session]


def batch(play: Play, text: str, seeds: int) -> list[Session]:
    """The scenario, and one in which gamma has another policy, each with some seeds."""
    found = [play(text, seed=seed) for seed in range(seeds)]
    for seed in range(seeds):
        other = play(text.replace('"random"', '"d-first"'), seed=seed)
        other.policy = "d-first"
        found.append(other)
    return found


def test_groups_are_runs_of_one_market_and_policy(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 3)
    assert [group.runs for group in groups(sessions)] == [(0, 1, 2), (3, 4, 5)]
    assert [group.name for group in groups(sessions)] == ["as-configured · 3 seeds", "d-first · 3 seeds"]
    assert [group.name for group in groups(sessions[2:])] == ["as-configured · seed 2", "d-first · 3 seeds"]
    sessions[0].hash8 = "11111111"
    assert [group.runs for group in groups(sessions)] == [(0,), (1, 2), (3, 4, 5)]


def test_means_intervals_and_paired_differences(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 4)
    rows = compare(sessions, [12] * 8, groups(sessions), 0)
    base, other = rows[4:]
    accuracy, difference = other.means["final accuracy"], other.differences["final accuracy"]
    assert (base.service, other.service, accuracy.seeds) == ("gamma", "gamma", 4)
    values = [np.array([100 * run.history[12].services[2].accuracy for run in sessions[k : k + 4]]) for k in (0, 4)]
    assert accuracy.interval == paired_interval(values[1], np.zeros(4))
    assert difference.interval == paired_interval(values[1], values[0])
    assert base.differences == {}
    interval = accuracy.interval
    assert accuracy.text == f"{values[1].mean():.2f} [{interval.low:.2f}, {interval.high:.2f}]"
    assert other.means["rounds to target"].text == "never"
    met = rows[0].means["rounds to target"].to_target
    assert met is not None
    assert met.reached.all()  # alpha leaves early in all of them


def test_fewer_than_three_seeds_and_runs_in_progress_have_no_interval(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 2)
    rows = compare(sessions, [12] * 4, groups(sessions), 0)
    assert not any(mean.interval.known for row in rows for mean in row.means.values())
    sessions = batch(play_small, scenario_text, 3)
    sessions[0].state = RunState.RUNNING
    base, other, *_ = compare(sessions, [12] * 6, groups(sessions), 0)
    assert not base.means["final accuracy"].interval.known
    assert other.means["final accuracy"].interval.known
    assert not other.differences["final accuracy"].interval.known  # the baseline is in progress


def test_differences_are_of_the_seeds_that_both_have(play_small: Play, scenario_text: str) -> None:
    sessions = batch(play_small, scenario_text, 3)
    del sessions[0]
    row = compare(sessions, [12] * 5, groups(sessions), 0)[5]
    accuracy = [100 * run.history[12].services[2].accuracy for run in sessions]
    assert row.means["final accuracy"].interval.estimate == pytest.approx(np.mean(accuracy[2:]))
    difference = row.differences["final accuracy"].interval.estimate
    assert difference == pytest.approx(np.mean(accuracy[3:]) - np.mean(accuracy[:2]))


def test_a_curve_of_differences_is_over_the_seeds_and_rounds_that_both_have(
    play_small: Play, scenario_text: str
) -> None:
    sessions = batch(play_small, scenario_text, 3)
    rounds = [12, 12, 12, 9, 12, 12]
    values = [[run.history[n].services[2].accuracy for n in range(1, 10)] for run in sessions]
    xs, ys = difference_series(sessions, rounds, [3, 4, 5], [1, 2], "gamma", "accuracy")
    assert xs == list(range(1, 13))
    xs, ys = difference_series(sessions, rounds, [3, 4], [0, 1, 2], "gamma", "accuracy")
    assert xs == list(range(1, 10))
    assert ys == pytest.approx((np.sum(values[3:5], axis=0) - np.sum(values[:2], axis=0)) / 2)
    assert difference_series(sessions, rounds, [3], [1, 2], "gamma", "accuracy") == ([], [])


def test_a_mean_curve_holds_the_accuracy_of_a_service_that_has_left(play_small: Play, scenario_text: str) -> None:
    one, other = play_small(scenario_text), play_small(scenario_text, seed=2)
    xs, ys = mean_series([one, other], [12, 5], "beta", "accuracy")
    assert xs == list(range(1, 13))
    own = [run.history for run in (one, other)]
    assert ys[2] == pytest.approx((own[0][3].services[1].accuracy + own[1][3].services[1].accuracy) / 2)
    assert ys[11] == pytest.approx((own[0][12].services[1].accuracy + own[1][5].services[1].accuracy) / 2)
    _, spent = mean_series([one, other], [12, 5], "beta", "spent")
    assert spent[11] == pytest.approx(own[0][12].services[1].spent / 2e6)
    assert mean_series([one], [0], "beta", "accuracy") == ([], [])


def test_the_band_of_a_mean_curve_is_the_interval_at_each_round(play_small: Play, scenario_text: str) -> None:
    sessions = [play_small(scenario_text, seed=seed) for seed in range(4)]
    xs, low, high = band_series(sessions, [12] * 4, "gamma", "accuracy")
    assert xs == list(range(1, 13))
    for number in (1, 7, 12):
        values = [session.history[number].services[2].accuracy for session in sessions]
        interval = paired_interval(values, np.zeros(4))
        assert (low[number - 1], high[number - 1]) == pytest.approx((interval.low, interval.high))
    sessions[3].state = RunState.RUNNING
    assert band_series(sessions, [12] * 4, "gamma", "accuracy") == ([], [], [])
    assert band_series(sessions[:2], [12] * 2, "gamma", "accuracy") == ([], [], [])


def test_a_band_leaves_out_rounds_in_which_a_run_has_no_value(play_small: Play, scenario_text: str) -> None:
    sessions = [play_small(scenario_text, seed=seed) for seed in range(3)]
    xs, *_ = band_series(sessions, [12] * 3, "alpha", "mean_payment")  # it leaves early
    assert 0 < len(xs) < 12
    assert band_series(sessions, [0, 12, 12], "alpha", "accuracy") == ([], [], [])


def test_a_band_ends_where_no_mean_can_be(play_small: Play, scenario_text: str) -> None:
    """The plot would else show accuracies below 0 and above 100 %, and have little room for the curves."""
    sessions = [play_small(scenario_text, seed=seed) for seed in range(3)]
    _, low, high = band_series(sessions, [1, 12, 12], "gamma", "test_accuracy")  # one is compared at its first round
    assert (low[-1], high[-1]) == (0.0, 1.0)
    _, low, high = band_series(sessions, [1, 12, 12], "gamma", "reward")
    assert low[-1] == 0.0
    assert high[-1] > 1.0
