"""Money is exact: amounts are whole numbers of micro-units inside, and have six decimals outside."""

from typing import overload

import numpy as np

from fl.arrays import FloatArray, IntArray

MICRO = 1_000_000  # micro-units in one unit of money

Micro = int
MicroArray = IntArray


@overload
def to_micro(amount: float) -> Micro: ...
@overload
def to_micro(amount: FloatArray) -> MicroArray: ...
def to_micro(amount: float | FloatArray) -> Micro | MicroArray:
    """Round an amount of money half-even to whole micro-units. The amount must be finite."""
    if isinstance(amount, np.ndarray):
        return np.rint(amount * MICRO).astype(np.int64)
    return round(float(amount) * MICRO)


def part_of(amount: MicroArray, part: IntArray) -> MicroArray:
    """Return parts of amounts, given in millionths, rounded down; their plain products may be above 64 bits."""
    whole, rest = np.divmod(amount, MICRO)
    share: MicroArray = whole * part + rest * part // MICRO
    return share


def text(amount: Micro) -> str:
    """Write an amount with exactly six decimals: ``text(4_600_000) == "4.600000"``."""
    sign = "-" if amount < 0 else ""
    units, micro = divmod(abs(int(amount)), MICRO)
    return f"{sign}{units}.{micro:06d}"
