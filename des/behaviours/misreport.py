"""Clients that say they have more data, or better data, than they have."""

import numpy as np

from des.behaviours.behaviour import Behaviour, Setting
from des.money import MicroArray
from fl.arithmetic.draws import draw_key, uniforms
from fl.arithmetic.elementary import rounded
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.options import is_number

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
        for name, value, least in (("size", size, -1.0), ("emd", emd, -1.0)):
            if not is_number(value) or not least <= value <= LARGEST or (name == "size" and value == least):
                limits = f"above {least:g} and at most" if name == "size" else f"from {least:g} to"
                raise ValueError(f"{name} must be a number {limits} {LARGEST:g}, not {value!r}")
        if not is_number(share) or not 0 <= share <= 1:
            raise ValueError(f"share must be a number from 0 to 1, not {share!r}")
        if size == 0 and emd == 0:
            raise ValueError("nothing is misreported; set size or emd to a bias other than 0")
        self._size, self._emd, self._share = float(size), float(emd), float(share)
        self._liars: BoolArray = np.zeros(0, dtype=np.bool_)

    def begin(self, setting: Setting) -> None:
        draw = uniforms(draw_key(setting.seed, "behaviour"), 0, 0, np.arange(setting.clients))[0]
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
