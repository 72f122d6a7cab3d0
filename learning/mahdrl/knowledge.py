"""What an agent knows of its own data set before the first round: how it is learned, by the curve fitted to it.

Whoever trains a model knows on which data, and may have trained on such data before. Where few large clients are best,
and where many lopsided ones, depends on the learning curve, and shows in an agent's own progress only when the rounds
that count the most are over. Of the curve, an agent sees how fast the model learns from more images, from more clients
and from lopsided ones, at first and later; not the noise, nor how far it will come.
"""

import numpy as np

from fl.arrays import Float32Array
from fl.surrogate import Curve

RANGES = {
    "step_size": (0.5, 1.0),
    "step_clients": (-0.85, 0.0),
    "step_emd": (-0.75, 0.25),
    "first_size": (0.0, 1.0),
    "first_clients": (-1.8, -0.1),
    "first_emd": (-2.7, 1.1),
    "drift_left": (0.5, 1.5),
    "decay": (0.25, 1.55),
}
"""The parameters of a curve that are seen, and about their range over the curves that come with flmarket. An agent sees
others as the nearest within."""

NUMBERS = ("known", *RANGES)  # what an agent knows, in its order: first, 1 if it knows a curve at all

_LEAST, _MOST = np.array(list(RANGES.values())).T


def knowledge(curve: Curve | None) -> Float32Array:
    """Return what is known [9], each parameter from -1 to 1 over its range; zeros where there is no curve."""
    if curve is None:
        return np.zeros(len(NUMBERS), dtype=np.float32)
    values = np.array([getattr(curve, name) for name in RANGES])
    within = (np.clip(values, _LEAST, _MOST) - _LEAST) / (_MOST - _LEAST)
    known: Float32Array = np.concatenate([[1.0], 2.0 * within - 1.0]).astype(np.float32)
    return known
