"""exp, log and their relatives that give the same bits on every machine, for numbers and for arrays.

The last bit of the C library's functions, and of NumPy's, differs between processors and versions, and can decide
between two clients. These functions are additions, multiplications, divisions and exact steps alone, which IEEE 754
defines to the last bit, in Python, NumPy and the extension alike. Their relative error is at most 2e-15.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from fl.arithmetic.native import extension
from fl.arrays import BoolArray, FloatArray

_native = extension("exp", "log", "exponentials", "logarithms", "quantiles", "rounded")

_LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # ln 2 to 32 bits, so that its product with a small whole number is exact

_LN2_LOW = 1.90821492927058770002e-10  # what it lacks

_PER_LN2 = 1.4426950408889634
_SQRT_HALF = 0.7071067811865476

_EXP = [1.0 / math.factorial(n) for n in range(13, -1, -1)]
_LOG = [1.0 / n for n in range(23, 0, -2)]
_SIN = [(-1.0) ** n / math.factorial(2 * n + 1) for n in range(8, -1, -1)]
_COS = [(-1.0) ** n / math.factorial(2 * n) for n in range(8, -1, -1)]

_LEAST, _MOST = -746.0, 710.0  # beyond these the exponential is 0, or too large for a float

DIGITS = 12  # significant digits of the numbers in the logs that are not exact

_TENS = np.array([10.0**n for n in range(23)])  # the powers of ten that are floats exactly


@overload
def rounded(x: float) -> float: ...
@overload
def rounded(x: FloatArray) -> FloatArray: ...
def rounded(x: float | FloatArray) -> float | FloatArray:
    """Return ``x`` with 12 significant digits: what a log holds of a number that is not exact.

    Another program, with its own functions, then finds the same digits.
    """
    if not isinstance(x, np.ndarray):
        return float(f"{x:.{DIGITS}g}")
    result, certain = _rounded_by_scaling(x)
    if certain is not None:
        result[~certain] = [rounded(value) for value in x[~certain].tolist()]
    return result


def _rounded_by_scaling(x: FloatArray) -> tuple[FloatArray, BoolArray | None]:
    """Return ``x`` with 12 significant digits, and where that is certain to be what decimal digits give; None for all.

    A whole number of 12 digits and a power of ten up to 10^22 are exact, so that their quotient is the float nearest to
    the decimal number. Only the product of ``x`` with such a power is inexact, by half a unit in its last place. It
    lies between two whole numbers by multiples of that unit, so that the nearer one is certain unless it is halfway.
    """
    if _native is not None:
        x = np.asarray(x, dtype=np.float64, order="C")
        result, certain = np.empty_like(x), np.empty(x.shape, dtype=np.bool_)
        return result, None if _native.rounded(x, result, certain) else certain
    size = np.abs(x)
    usual = (size >= 1e-9) & (size < 1e11)
    size = np.where(usual, size, 1.0)
    power_of_ten = DIGITS - 1 - np.floor(np.log10(size)).astype(np.int64)  # one off, maybe, next to a power of ten
    scale = _TENS[power_of_ten]
    product = size * scale
    whole = np.rint(product)
    certain = usual & (np.abs(product - whole) != 0.5) & (product >= 1.001e11) & (product < 9.99e11)
    return np.copysign(whole / scale, x), None if certain.all() else certain


@overload
def exp(x: float) -> float: ...
@overload
def exp(x: FloatArray) -> FloatArray: ...
def exp(x: Any) -> Any:
    """Return e^x; infinity where it is too large for a float."""
    if _native is not None:
        return _each(_native.exponentials, x) if isinstance(x, np.ndarray) else _native.exp(x)
    if isinstance(x, np.ndarray):
        limited = np.minimum(np.maximum(x, _LEAST), _MOST)
        whole = np.rint(limited * _PER_LN2)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.ldexp(_polynomial(_EXP, _less(limited, whole)), whole.astype(np.int32))
    one = float(min(max(x, _LEAST), _MOST))
    times = round(one * _PER_LN2)
    try:
        return math.ldexp(_polynomial(_EXP, _less(one, times)), times)
    except OverflowError:
        return math.inf


@overload
def log(x: float) -> float: ...
@overload
def log(x: FloatArray) -> FloatArray: ...
def log(x: Any) -> Any:
    """Return the natural logarithm of ``x``. In an array, 0 has -inf, and a number below 0 has NaN."""
    if _native is not None:
        return _each(_native.logarithms, x) if isinstance(x, np.ndarray) else _native.log(x)
    if isinstance(x, np.ndarray):
        if not x.size or (x.min() > 0.0 and x.max() < math.inf):
            part, exponent = np.frexp(x)
            small = part < _SQRT_HALF
            part += part * small  # doubles the small ones
            exponent -= small
            return _log(part, exponent)
        proper = (x > 0.0) & (x < math.inf)
        improper = np.where(x == 0.0, -math.inf, np.where(x > 0.0, x, math.nan))
        return np.where(proper, log(np.where(proper, x, 1.0)), improper)
    if not 0.0 < x < math.inf:
        raise ValueError(f"only positive finite numbers have a logarithm, not {x}")
    mantissa, binary = math.frexp(x)
    return _log(2.0 * mantissa, binary - 1) if mantissa < _SQRT_HALF else _log(mantissa, binary)


@overload
def power(base: float, exponent: float) -> float: ...
@overload
def power(base: FloatArray, exponent: FloatArray) -> FloatArray: ...
def power(base: Any, exponent: Any) -> Any:
    """Return base^exponent, for a base above 0. Raises as ``log``."""
    if isinstance(base, np.ndarray):
        with np.errstate(invalid="ignore"):  # 0 * inf
            return exp(exponent * log(base))
    return exp(exponent * log(base))


def sigmoid(x: FloatArray) -> FloatArray:
    """Return the logistic function 1 / (1 + e^-x)."""
    value: FloatArray = 1.0 / (1.0 + exp(-x))
    return value


def waves(turns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sines and the cosines of angles in full turns, each of the shape of ``turns``."""
    quarter = np.rint(4.0 * turns)
    angle = (turns - 0.25 * quarter) * (2.0 * math.pi)  # at most an eighth of a turn
    square = angle * angle
    sine, cosine = angle * _polynomial(_SIN, square), _polynomial(_COS, square)
    which = quarter.astype(np.int64) % 4
    upright = which % 2 == 0
    sign_of_sine, sign_of_cosine = np.where(which < 2, 1.0, -1.0), np.where((which == 0) | (which == 3), 1.0, -1.0)
    return sign_of_sine * np.where(upright, sine, cosine), sign_of_cosine * np.where(upright, cosine, sine)


def normal_quantile(p: FloatArray) -> FloatArray:
    """Return the numbers that a standard normal variable is below with probability p, 0 < p < 1.

    Source: Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37, 1988;
    its function PPND16.
    """
    if _native is not None:
        return _each(_native.quantiles, p)
    middle = p - 0.5
    square = 0.180625 - middle * middle
    value: FloatArray = middle * _polynomial(_A, square) / _polynomial(_B, square)
    tails = np.abs(middle) > 0.425
    if tails.any():
        away = np.sqrt(-log(np.minimum(p, 1.0 - p)[tails]))
        near, far = away - 1.6, away - 5.0
        one, other = _polynomial(_C, near) / _polynomial(_D, near), _polynomial(_E, far) / _polynomial(_F, far)
        value[tails] = np.where(middle[tails] < 0, -1.0, 1.0) * np.where(away <= 5.0, one, other)
    return value


def _each(function: Callable[[FloatArray, FloatArray], None], array: FloatArray) -> FloatArray:
    """Return what a function of the extension makes of each number."""
    numbers = np.asarray(array, dtype=np.float64, order="C")
    result = np.empty_like(numbers)
    function(numbers, result)
    return result


def _less(x: Any, whole: Any) -> Any:
    """Return x - whole * ln 2, to more digits than the product has."""
    return (x - whole * _LN2_HIGH) - whole * _LN2_LOW


def _log(part: Any, exponent: Any) -> Any:
    """Return log(part * 2^exponent) for a part near 1: 2 * artanh((part - 1) / (part + 1)) and the power of 2."""
    ratio = (part - 1.0) / (part + 1.0)
    return exponent * _LN2_HIGH + (2.0 * ratio * _polynomial(_LOG, ratio * ratio) + exponent * _LN2_LOW)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """Return the polynomial's value by Horner's rule; the coefficient of the highest power comes first."""
    value: Any = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        value *= x
        value += coefficient
    return value


# Coefficients of AS 241, the highest power first: near the middle (A / B), in the tails (C / D), far out (E / F).
_A = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
_B = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
_C = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
_D = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
)  # fmt: skip
_E = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
)  # fmt: skip
_F = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)  # fmt: skip
