"""The data quality indicator (DQI, eq. 6) of a data set's size and earth mover's distance (EMD)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fl.arithmetic.elementary import exp, power
from fl.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class DQIParameters:
    """The six curve-fitting parameters of eq. (6) for one data set."""

    eta1: float
    eta2: float
    eta3: float
    eta4: float
    eta5: float
    eta6: float


PUBLISHED = DQIParameters(eta1=-0.1922, eta2=0.2613, eta3=0.00063, eta4=0.7084, eta5=0.3189, eta6=1.233)
"""The set printed in the paper, for EMNIST.

Its ``eta1`` is negative, which makes DQI *fall* as the data set grows, against the paper's own words ("a larger DQI
value means that the model can achieve higher accuracy"). The paper's sets for MNIST and Fashion-MNIST stand only in a
figure. See docs/decisions/dqi.md.
"""

JIAO = DQIParameters(eta1=0.361, eta2=4.348, eta3=1e-3, eta4=0.993, eta5=0.31, eta6=1.743)
"""The set of Jiao et al. (arXiv 1912.06370), from whom eq. (6) comes, as a public implementation of theirs has it.

DQI rises with the data size under it. See docs/decisions/dqi.md.
"""

PRINTED: Final[Mapping[str, DQIParameters]] = {"published": PUBLISHED, "jiao": JIAO}
"""The sets that are the same for every data set, by the value of a scenario's ``dqi``; the others are fitted."""


def alpha(emd_values: npt.ArrayLike, parameters: DQIParameters) -> FloatArray:
    """Return the function of the EMD in eq. (6): what the label distribution alone allows. Shape as ``emd_values``."""
    v = np.asarray(emd_values, dtype=np.float64)
    return np.asarray(parameters.eta4 * exp(-np.square((v + parameters.eta5) / parameters.eta6)))


def dqi(data_sizes: npt.ArrayLike, emd_values: npt.ArrayLike, parameters: DQIParameters) -> FloatArray:
    """Return the DQI Psi of data sets of the given sizes and EMDs (eq. 6). Shapes broadcast.

    Psi = alpha(v) - eta1 * exp(-eta2 * (eta3 * D) ** alpha(v))
    """
    size = np.asarray(data_sizes, dtype=np.float64)
    a = alpha(emd_values, parameters)
    return np.asarray(a - parameters.eta1 * exp(-parameters.eta2 * power(parameters.eta3 * size, a)))


_PIECES = 256  # pieces of the EMD's range in ``dqi_range``: the more, the tighter the bounds

_MARGIN = 1e-10  # what rounding can add to a DQI, and more


def dqi_range(data_sizes: npt.ArrayLike, limit: float, parameters: DQIParameters) -> tuple[float, float]:
    """Return bounds of the DQI of data sets of the given sizes, whatever their EMDs are from 0 to ``limit``.

    Piece by piece of that range, alpha(v) lies between its values at the ends (or its peak), and, as a function of it,
    so does the exponential of eq. (6). Bounds of both add up to bounds of the DQI, about as tight as pieces are short.
    """
    edges = np.append(np.linspace(0.0, limit, _PIECES + 1), -parameters.eta5)  # alpha's peak
    edges = np.sort(edges[(edges >= 0.0) & (edges <= limit)])
    a = alpha(edges, parameters)
    size = np.asarray(data_sizes, dtype=np.float64)[..., None]
    rest = np.asarray(-parameters.eta1 * exp(-parameters.eta2 * power(parameters.eta3 * size, a)))
    low, high = (side(a[:-1], a[1:]) + side(rest[..., :-1], rest[..., 1:]) for side in (np.minimum, np.maximum))
    return float(low.min()) - _MARGIN, float(high.max()) + _MARGIN
