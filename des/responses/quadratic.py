"""Costs that rise ever faster: the best response of the usual quadratic cost, in closed form."""

import numpy as np

from des.response import Awards, BestResponse
from fl.arrays import FloatArray
from flmarket.core.plugin_options import in_range

__all__ = ["Quadratic"]


class Quadratic(BestResponse):
    """Clients do what pays best where a quantity q costs ``c ((1 - curvature) q + curvature q^2)``.

    All of the work costs c, as ``clients.cost`` has it. The best quantity is
    ``(price / c - 1 + curvature) / (2 curvature)``, within 0 and 1.
    """

    summary = "the best response to a cost that is quadratic in the quantity"

    def __init__(self, *, curvature: float = 1.0) -> None:
        """Take the part of the cost that is quadratic, above 0."""
        self._curvature = in_range("curvature", curvature, 1e-6, 1)

    def cost(self, awards: Awards, quantity: FloatArray) -> FloatArray:
        return awards.cost * quantity * (1 - self._curvature + self._curvature * quantity)

    def marginal(self, awards: Awards, quantity: FloatArray) -> FloatArray:
        return awards.cost * (1 - self._curvature + 2 * self._curvature * quantity)

    def respond(self, awards: Awards) -> FloatArray:
        if awards.menu is not None:
            return super().respond(awards)
        free = awards.cost == 0
        ratio = awards.price / np.where(free, 1.0, awards.cost)
        inner = (ratio - 1 + self._curvature) / (2 * self._curvature)
        return np.where(free, 1.0, np.clip(inner, 0.0, 1.0))
