"""Statistics, against values computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning.statistics import area_under_curve, probability_of_improvement

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
