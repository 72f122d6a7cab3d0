"""Clients that ask more than their costs, by a share that stays the same for the whole run."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from des.behaviour import Behaviour, Setting
from des.money import MicroArray
from fl.arithmetic.draws import draw_key, uniforms
from fl.arrays import FloatArray
from flmarket.core.plugin_options import is_number

__all__ = ["Markup"]

LARGEST = 5.0
"""The largest markup, as a share of the cost; the bids of the largest population still add up inside 64 bits."""


class Markup(Behaviour):
    """Each client bids its cost and a share of it: the same for all, or drawn for each client from a range."""

    def __init__(
        self,
        # the markup as a share of the cost, 0 to 5; or [lowest, highest], from which each client's own share is drawn
        # once
        share: float | Sequence[float] = 0.2,
    ) -> None:
        ends: list[Any] = list(share) if isinstance(share, Sequence) else [share, share]
        if len(ends) != 2 or not all(is_share(end) for end in ends) or ends[0] > ends[-1]:
            raise ValueError(f"share must be a number from 0 to {LARGEST:g}, or [lowest, highest], not {share!r}")
        self._low, self._high = float(ends[0]), float(ends[-1])
        self._shares: FloatArray = np.full(1, self._low)

    def begin(self, setting: Setting) -> None:
        draw = uniforms(draw_key(setting.seed, "behaviour"), 0, 0, setting.numbers)[0]
        self._shares = self._low + (self._high - self._low) * draw

    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        return marked_up(costs, self._shares)

    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        return marked_up(lowest, self._low), marked_up(highest, self._high)


def marked_up(costs: MicroArray, share: float | FloatArray) -> MicroArray:
    """Return costs and a share of them, rounded half-even to whole micro-units."""
    bids: MicroArray = costs + np.rint(costs * share).astype(np.int64)
    return bids


def is_share(value: object) -> bool:
    """Whether a value of a scenario file is a markup: a number from 0 to ``LARGEST``."""
    return is_number(value) and 0 <= value <= LARGEST
