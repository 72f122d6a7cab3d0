"""Clients that promise all of the work and shirk where it pays."""

import numpy as np

from des.response import Awards, Response
from fl.arrays import FloatArray
from flmarket.core.plugin_options import in_range

__all__ = ["MoralHazard"]


class MoralHazard(Response):
    """Clients promise all of the work, and do as little as they can where that leaves them more.

    Shirking saves ``(1 - least) cost``, and loses the price if it is found out: they shirk where what it saves is more
    than ``detection`` times the price. Whether it is found out is up to the mechanism: one that settles after delivery
    sees what was done.
    """

    summary = "promise everything, and shirk where it pays"

    def __init__(self, *, least: float = 0.1, detection: float = 0.0) -> None:
        """Take the least that they do, and the probability of being found out that they reckon with."""
        self._least = in_range("least", least, 1e-6, 1)
        self._detection = in_range("detection", detection, 0, 1)

    def respond(self, awards: Awards) -> FloatArray:
        return np.ones(len(awards.price)) if awards.menu is None else self.best_entry(awards, awards.menu)

    def work(self, awards: Awards, promised: FloatArray) -> FloatArray:
        shirks = (1 - self._least) * awards.cost > self._detection * awards.price
        return np.where(shirks, self._least, 1.0) * promised
