"""Time is exact: instants and durations are whole microseconds inside, and seconds with six decimals outside.

So no comparison hangs on the rounding of a sum: an update that takes exactly until the deadline arrives, and what
happens at the same instant does so under every order of additions.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from des.money import MICRO
from fl.arithmetic.elementary import exp
from fl.arrays import FloatArray, IntArray

Microseconds = int

NEVER: Microseconds = 2**63 - 1

_LARGEST_WORK = 2**30  # images times epochs of a job: a million images, a thousand epochs; or bytes of a model

_BYTE = 8e-6  # seconds that a byte takes at 1 Mbps


def exact(number: float) -> Fraction:
    """Return the decimal number that is meant: .001 is a thousandth, though no binary number is."""
    return Fraction(repr(float(number)))


class WorkTimes:
    """The time that work takes at given speeds: images to train on, or bytes that travel."""

    def __init__(self, speeds: Iterable[tuple[float, float]]) -> None:  # [S] seconds for one at speed 1, and the speed
        ratios = [exact(seconds) * MICRO / exact(speed) for seconds, speed in speeds]
        fits = all(ratio.numerator * _LARGEST_WORK < 2**62 and ratio.denominator < 2**62 for ratio in ratios)
        # Python's integers, which have no largest one, where 64 bits are not enough.
        kind: Any = np.int64 if fits else object
        self._above = np.array([ratio.numerator for ratio in ratios], dtype=kind)
        self._below = np.array([ratio.denominator for ratio in ratios], dtype=kind)
        self._whole = all(ratio.denominator == 1 for ratio in ratios)

    def of(
        self,
        work: IntArray,  # [n] images times epochs, or bytes
        speed: IntArray,  # [n] the place of each client's speed among those given
    ) -> IntArray:
        """Return how long each piece of work takes [n]: ``seconds * work / speed``, half-even to a microsecond."""
        parts: IntArray = work * self._above[speed]
        if self._whole:
            return parts
        below = self._below[speed]
        whole: IntArray = parts // below
        twice = 2 * (parts - whole * below)
        whole += (twice > below) | ((twice == below) & (whole % 2 == 1))
        return whole


class Travel:
    """The time that models travel to clients, or back: as many seconds for all, or their bytes over each bandwidth."""

    def __init__(self, time: Microseconds, mbps: FloatArray | None) -> None:  # [C] the bandwidths, if there are any
        self._time, self._times = time, None
        if mbps is not None:
            different, self._of = np.unique(mbps, return_inverse=True)
            self._times = WorkTimes((_BYTE, each) for each in different.tolist())

    def of(self, size: IntArray, clients: IntArray) -> IntArray:  # [n] bytes of each model, and who fetches or sends it
        if self._times is None:
            return np.full(len(clients), self._time)
        return self._times.of(size, self._of[clients])


def stretched(durations: IntArray, spread: float, z: FloatArray) -> IntArray:
    """Return durations times e^(spread z), half-even to a microsecond, and at most 36,000 years."""
    # Python's integers, where there are such (``WorkTimes``), become floats as 64-bit ones do
    return np.rint(np.minimum(durations.astype(np.float64) * exp(spread * z), 2.0**60)).astype(np.int64)


def departure(part: Any, whole: Any) -> Any:
    """Return when a client leaves that does so after a part below 1 of a job, in whole microseconds: before its end."""
    return np.asarray(part * whole).astype(np.int64)
