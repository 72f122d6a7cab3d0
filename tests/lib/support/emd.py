"""Equation (1), for one data set: the reference of ``fl.data.dirichlet`` and ``fl.data.emd``."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def emd(counts: Sequence[int] | npt.NDArray[np.int64]) -> float:
    """Return the L1 distance of a data set's label distribution from the uniform one, given its label counts [L]."""
    shares = np.asarray(counts) / np.sum(counts)
    return float(np.abs(shares - 1.0 / len(shares)).sum())
