"""Calibration of any data set: what its results say where there is nothing to compare."""

import math

import numpy as np

from scenarios.calibration.surrogate import Comparison, summary


def row(real: float, surrogate: float) -> Comparison:
    return Comparison("pets", "random", real, surrogate, 0.01, 3.0, 3.0, np.array([real]), np.array([surrogate]))


def test_the_rank_correlation_of_policies_that_do_the_same_is_unknown() -> None:
    order, error = summary([row(1.0, 0.98), row(1.0, 0.99)])
    assert math.isnan(order)
    assert error == 0.01
    assert summary([row(0.8, 0.7), row(0.9, 0.8), row(0.7, 0.6)])[0] == 1.0
