"""Values relative to those of the other clients."""

import numpy as np

from fl.arrays import FloatArray, IntArray

NO_SPREAD = 1e-9
"""Values that deviate by less than this are equal, up to rounding."""


def standardised(values: FloatArray | IntArray) -> FloatArray:
    """Return values [C] less their mean, in standard deviations; zeros if all are equal."""
    centred: FloatArray = values - values.mean()
    spread = float(np.sqrt((centred * centred).mean()))
    return centred / spread if spread > NO_SPREAD else np.zeros_like(centred)
