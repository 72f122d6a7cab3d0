"""Sums and products that do not depend on the order of their terms, or have a fixed one, for what decides.

A BLAS adds the terms of a matrix product in an order that depends on the processor, NumPy's sums in one that depends on
how NumPy was built, and each order rounds differently. What is computed here has the same bits everywhere.
"""

import math
from collections.abc import Sequence

import numpy as np

from fl.arrays import AnyArray, FloatArray, IntArray

NO_SPREAD = 1e-9
"""Values that deviate by less than this, or by less than this share of the largest, are equal up to rounding."""

_EXACT_BITS = 53  # whole numbers up to 2^53 are exact in a float


def mean(values: AnyArray) -> float:
    """Return the mean of all values, their exact sum rounded once."""
    return math.fsum(values.ravel().tolist()) / values.size


def quantile(values: FloatArray, part: float) -> float:
    """Return the number [n] values are below with a probability of ``part``, linear between neighbours."""
    ascending = np.sort(values)
    position = part * (len(ascending) - 1)
    below = int(position)
    low, high = float(ascending[below]), float(ascending[min(below + 1, len(ascending) - 1)])
    return low + (position - below) * (high - low)


def standardised(values: FloatArray | IntArray) -> FloatArray:
    """Return values [C] less their mean, in standard deviations; zeros if all are equal."""
    centred = np.asarray(values, dtype=np.float64) - mean(values)
    spread = math.sqrt(mean(centred * centred))
    even = spread <= NO_SPREAD * max(1.0, float(np.abs(values).max()))
    return np.zeros_like(centred) if even else centred / spread


def column_sums(values: AnyArray) -> FloatArray:
    """Return the sum of each column [n] of a matrix [m, n], the exact sum rounded once."""
    return np.array([math.fsum(column) for column in values.T.tolist()])


def folded_sums(values: FloatArray) -> FloatArray:
    """Return the sum along the last axis: its second half is added to its first until one number is left.

    For sums too long to be exact in a reasonable time: the order is written, and errors grow with its logarithm.
    """
    while (length := values.shape[-1]) > 1:
        half = length // 2
        folded = values[..., : length - half].copy()
        folded[..., :half] += values[..., length - half :]
        values = folded
    return values[..., 0]


def exact_product(left: AnyArray, right: AnyArray) -> FloatArray:
    """Return the matrix products [..., n, o] of stacked matrices [..., n, i] and [..., i, o], by the BLAS.

    Each row of ``left`` and each matrix of ``right`` is rounded to whole multiples of a power of 2, 23 bits of them for
    up to 127 terms: about a float32's precision, relative to its largest number. Products and sums of such numbers are
    exact, so the order in which the BLAS adds them, and whether it multiplies and adds in one step, does not matter.
    """
    bits = (_EXACT_BITS - left.shape[-1].bit_length()) // 2
    exact: FloatArray = _multiples(left, (-1,), bits) @ _multiples(right, (-2, -1), bits)
    return exact


def _multiples(values: AnyArray, axes: tuple[int, ...], bits: int) -> FloatArray:
    """Return the values as multiples of a power of 2, at most 2^bits of them, along ``axes``."""
    exponent = np.frexp(np.abs(values).max(axis=axes, keepdims=True, initial=0.0))[1]
    # Next to a number of this size, a float has no digits left for less than such a multiple: the sum rounds it away.
    large = np.ldexp(1.5, exponent + (_EXACT_BITS - 1 - bits))
    rounded: FloatArray = values + large
    rounded -= large
    return rounded


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the matrix product [n, o] of [n, i] and [i, o], whose terms are added in their order. For a small i."""
    total: FloatArray = left[:, 0, None] * right[0]
    for column, row in zip(left.T[1:], right[1:], strict=True):
        total += column[:, None] * row
    return total


def inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a small symmetric positive definite matrix, by Gauss and Jordan's elimination."""
    size = len(matrix)
    rows: list[Sequence[float]] = [
        [*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix.tolist())
    ]
    for pivot in range(size):  # positive definite: no pivot is zero, and rows need not be exchanged
        scale = rows[pivot][pivot]
        rows[pivot] = [value / scale for value in rows[pivot]]
        for i in range(size):
            if i != pivot:
                factor = rows[i][pivot]
                rows[i] = [value - factor * above for value, above in zip(rows[i], rows[pivot], strict=True)]
    return np.array([row[size:] for row in rows])
