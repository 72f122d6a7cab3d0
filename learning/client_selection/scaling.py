"""Values relative to those of the other clients."""

import math

import numpy as np

from fl.arithmetic.ordered_sums import mean
from fl.arrays import FloatArray, IntArray

NO_SPREAD = 1e-9
"""Values that deviate by less than this, or by less than this share of the largest, are equal up to rounding."""


def standardised(values: FloatArray | IntArray) -> FloatArray:
    """Return values [C] less their mean, in standard deviations; zeros if all are equal."""
    centred = np.asarray(values, dtype=np.float64) - mean(values)
    spread = math.sqrt(mean(centred * centred))
    even = spread <= NO_SPREAD * max(1.0, float(np.abs(values).max()))
    return np.zeros_like(centred) if even else centred / spread
