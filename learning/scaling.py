"""Values relative to those of the other clients."""

import math

import numpy as np

from fl.arrays import BoolArray, FloatArray, IntArray
from fl.ordered import mean

NO_SPREAD = 1e-9
"""Values that deviate by less than this, or by less than this share of the largest, are equal up to rounding."""


def standardised(values: FloatArray | IntArray) -> FloatArray:
    """Return values [C] less their mean, in standard deviations; zeros if all are equal."""
    centred = np.asarray(values, dtype=np.float64) - mean(values)
    spread = math.sqrt(mean(centred * centred))
    even = spread <= NO_SPREAD * max(1.0, float(np.abs(values).max()))
    return np.zeros_like(centred) if even else centred / spread


def standardised_rows(
    values: FloatArray | IntArray,  # of any size, such as money in micro-units
    there: BoolArray,  # [n, C] which clients a market has, at least one; the others' values are 0
) -> FloatArray:
    """Return values [n, C] of n markets less their mean over the clients that are there, in standard deviations.

    Zeros where all are equal, as in ``standardised``. Sums have a fixed order: what they decide must not depend on the
    machine.
    """
    count = there.sum(axis=1)[:, None]
    known = np.where(there, values, 0.0)
    centred = np.where(there, known - np.cumsum(known, axis=1)[:, -1:] / count, 0.0)
    spread = np.sqrt(np.cumsum(centred * centred, axis=1)[:, -1:] / count)
    even = spread <= NO_SPREAD * np.maximum(1.0, np.abs(known).max(axis=1, keepdims=True))
    return np.where(even, 0.0, centred / np.where(even, 1.0, spread))
