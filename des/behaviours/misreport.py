"""Clients that say they have more data, or better data, than they have."""

import numpy as np

from des.behaviour import Behaviour, Setting
from des.money import MicroArray
from fl.arithmetic.draws import draw_key, uniforms
from fl.arithmetic.elementary import rounded
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.plugin_options import in_range

__all__ = ["Misreport"]

LARGEST = 4.0  # the largest bias: what is reported is at most five times what is there


class Misreport(Behaviour):
    """Clients report a size or an EMD with a bias, and ask what data like that would cost a truthful client."""

    misreports = True

    def __init__(
        self,
        size: float = 0.0,  # the bias of D: D (1 + size) images are reported, at least one; above -1, at most 4
        emd: float = 0.0,  # the bias of the EMD: EMD (1 + emd) is reported, at most what labels allow; -1 to 4
        # the probability that a client misreports, drawn for each client once; the others tell the truth
        share: float = 1.0,
    ) -> None:
        self._size = in_range("size", size, -1, LARGEST, above=True)
        self._emd, self._share = in_range("emd", emd, -1, LARGEST), in_range("share", share, 0, 1)
        if size == 0 and emd == 0:
            raise ValueError("nothing is misreported; set size or emd to a bias other than 0")
        self._liars: BoolArray = np.zeros(0, dtype=np.bool_)

    def begin(self, setting: Setting) -> None:
        draw = uniforms(draw_key(setting.seed, "behaviour"), 0, 0, setting.numbers)[0]
        self._liars = draw < self._share

    def report(self, data_size: IntArray, emd: FloatArray, largest_emd: FloatArray) -> tuple[IntArray, FloatArray]:
        size = np.maximum(1, np.rint(data_size * (1.0 + self._size))).astype(np.int64)
        if not self._emd:
            return size, emd
        biased = rounded(np.minimum(emd * (1.0 + self._emd), largest_emd))
        return size, np.minimum(biased, largest_emd)  # which may have been rounded up

    def misreporting(self, round_: int) -> BoolArray:
        return self._liars

    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        return costs

    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        return lowest, highest
