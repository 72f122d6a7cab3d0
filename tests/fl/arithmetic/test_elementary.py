"""exp, log and their relatives: near the exact values, and the same bits for numbers, arrays and all machines.

Every test holds with the compiled extension and without it.
"""

import hashlib
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal, localcontext
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fl.arithmetic import elementary
from fl.arithmetic.elementary import exp, log, normal_quantile, power, rounded, sigmoid, waves
from fl.arrays import FloatArray
from support.implementations import compiled_and_not, vectors, without_extension
from support.tiers import examples

each = compiled_and_not(elementary)

CLOSE = 2e-15
"""The promise of the module."""

SPREAD = np.random.PCG64(0).random_raw(3000) / 2.0**64


def exactly(function: str, x: float) -> float:
    """Return exp or ln of a float, from 40 decimal digits."""
    with localcontext() as context:
        context.prec = 40
        return float(getattr(Decimal(x), function)())


@example(0.0)
@example(1.0)
@example(-1e-300)
@examples(400)
@given(st.floats(-700, 700) | st.floats(-1, 1))
def test_exp(x: float) -> None:
    assert exp(x) == pytest.approx(exactly("exp", x), rel=CLOSE)


@example(1.0)
@example(5e-324)
@example(1.7e308)
@examples(400)
@given(st.floats(-700, 700).map(math.exp) | st.floats(0.5, 1.5))
def test_log(x: float) -> None:
    assert log(x) == pytest.approx(exactly("ln", x), rel=CLOSE)


def test_numbers_and_arrays_have_the_same_bits() -> None:
    exponents = 1600 * SPREAD - 800
    assert [exp(x) for x in exponents.tolist()] == exp(exponents).tolist()
    assert [log(x) for x in SPREAD.tolist()] == log(SPREAD).tolist()
    assert [power(x, 0.3) for x in SPREAD.tolist()] == power(SPREAD, 0.3).tolist()
    assert [rounded(x) for x in exponents.tolist()] == rounded(exponents).tolist()


@pytest.mark.parametrize("way", [lambda: without_extension(elementary), *(partial(vectors, width) for width in (0, 1))])
def test_every_way_gives_the_same_bits(way: Callable[[], AbstractContextManager[None]]) -> None:
    """Without the extension, and with vectors of any width; forwards and backwards, singly, and beside each other."""
    far = np.array([-math.inf, -746.0, -745.2, -745.13, -708.4, -0.0, 0.0, 709.78, 709.79, 710.0, math.inf, math.nan])
    exponents = np.concatenate([1600 * SPREAD - 800, 1e-3 * (SPREAD - 0.5), far])
    numbers = np.concatenate([exp(1450 * SPREAD - 745), 0.5 + SPREAD, [5e-324, 2.0**-1022, 1.7e308, 0.0, -1.0]])
    parts = np.concatenate([SPREAD, 10.0 ** (-300 * SPREAD), 1 - 10.0 ** (-15 * SPREAD)])
    parts = parts[(parts > 0) & (parts < 1)]
    bases, to = 1000 * SPREAD + 1, 8 * SPREAD[::-1] - 4

    def values() -> list[FloatArray]:
        powers = [power(bases[: 3 * n].reshape(3, -1), to[: 3 * n].reshape(3, -1)) for n in (1, 7, 8, 21)]
        singly = [
            np.array([exp(x) for x in exponents[:-1].tolist()]),
            np.array([log(x) for x in numbers[:-2].tolist()]),
        ]
        both_ways = [exp(exponents), log(numbers), exp(exponents[::-2]), log(numbers[::-2])]
        return [*both_ways, normal_quantile(parts), *powers, *singly]

    expected = values()
    assert np.array_equal(expected[8], exp(to[:63].reshape(3, -1) * log(bases[:63].reshape(3, -1))))
    with way():
        found = values()
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_the_exponential_of_what_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        exp(math.nan)


def test_exp_beyond_what_a_float_holds() -> None:
    assert (exp(-1e9), exp(1e9), exp(-math.inf), exp(math.inf)) == (0.0, math.inf, 0.0, math.inf)
    found = exp(np.array([-1e9, 1e9, -math.inf, math.inf, math.nan]))
    assert found[:4].tolist() == [0.0, math.inf, 0.0, math.inf]
    assert math.isnan(found[4])


@pytest.mark.parametrize("x", [0.0, -1.0, math.inf, math.nan])
def test_a_number_without_a_logarithm_is_refused(x: float) -> None:
    with pytest.raises(ValueError, match="only positive finite numbers have a logarithm, not "):
        log(x)


def test_numbers_without_a_logarithm_in_an_array_are_marked() -> None:
    with np.errstate(all="raise"):
        found = log(np.array([1.0, 0.0, -1.0, math.inf, math.nan]))
        assert power(np.array([0.0, 4.0]), np.array([0.5, 0.5])).tolist() == [0.0, 2.0]
    assert found[[0, 1, 3]].tolist() == [0.0, -math.inf, math.inf]
    assert np.isnan(found[[2, 4]]).all()


def test_powers() -> None:
    bases, exponents = 1000 * SPREAD[:500] + 1, SPREAD[500:1000]
    assert power(bases, exponents) == pytest.approx(bases**exponents, rel=10 * CLOSE)
    assert rounded(power(300.0, 1.0)) == 300.0


def test_sines_and_cosines_of_turns() -> None:
    turns = 80 * SPREAD - 40
    sine, cosine = waves(turns)
    angle = 2 * np.pi * (turns - np.rint(turns))
    assert sine == pytest.approx(np.sin(angle), abs=CLOSE)
    assert cosine == pytest.approx(np.cos(angle), abs=CLOSE)
    quarters = np.arange(-8, 9) / 4
    assert waves(quarters)[0].tolist() == [0, 1, 0, -1] * 4 + [0]
    assert waves(quarters)[1].tolist() == [1, 0, -1, 0] * 4 + [1]


def test_the_logistic_function() -> None:
    x = 80 * SPREAD - 40
    assert sigmoid(x) == pytest.approx(1 / (1 + np.exp(-x)), rel=10 * CLOSE)
    assert sigmoid(np.array([-1e9, 0.0, 1e9])).tolist() == pytest.approx([0.0, 0.5, 1.0], abs=1e-300)


def test_quantiles_of_the_normal_distribution() -> None:
    """Python's own are by the same algorithm, over the C library's functions."""
    p = np.concatenate([SPREAD, 10.0 ** (-300 * SPREAD[:500]), 1 - 10.0 ** (-15 * SPREAD[:500])])
    p = p[(p > 0) & (p < 1)]
    expected = [NormalDist().inv_cdf(one) for one in p.tolist()]
    assert normal_quantile(p) == pytest.approx(np.array(expected), rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize(
    ("x", "expected"),
    [(math.pi, 3.14159265359), (1e-5 / 3, 3.33333333333e-06), (0.0, 0.0), (-2 / 3e10, -6.66666666667e-11), (0.1, 0.1)],
)
def test_twelve_significant_digits(x: float, expected: float) -> None:
    assert rounded(x) == rounded(expected) == expected
    assert rounded(np.array([[x]])).tolist() == [[expected]]


def test_arrays_are_rounded_as_their_decimal_digits_say() -> None:
    """Also next to halves of the last digit and to powers of ten, where scaling alone would err."""
    halves = (np.arange(100_000_000_000, 100_000_020_000) + 0.5) / 1e6
    powers = 10.0 ** np.arange(-30, 30)
    numbers = np.concatenate(
        [exp(80 * SPREAD - 40), 100 * SPREAD, halves, powers, 9.99999999999995 * powers, [0.0, -0.0]]
    )
    for x in (numbers, -numbers):
        expected = [float(f"{value:.12g}") for value in x.tolist()]
        assert np.array_equal(rounded(x), expected)
        assert np.array_equal(np.signbit(rounded(x)), np.signbit(expected))


@pytest.mark.parametrize(
    ("values", "digest"),
    [
        (lambda: exp(1400 * SPREAD - 700), "67a4442732a3b574"),
        (lambda: log(SPREAD), "ccdc6f73d6beaf68"),
        (lambda: power(SPREAD, 0.3), "38e62899b472f60f"),
        (lambda: np.concatenate(waves(64 * SPREAD)), "cc859a4f12b8a30a"),
        (lambda: sigmoid(80 * SPREAD - 40), "82812fe0221deea7"),
        (lambda: normal_quantile(SPREAD), "fe06bc079ccb3b7c"),
    ],
    ids=["exp", "log", "power", "waves", "sigmoid", "normal_quantile"],
)
def test_every_bit_is_what_it_was(values: Callable[[], FloatArray], digest: str) -> None:
    """Logs are compared to the byte, across machines and versions; a change of a last bit here changes them."""
    assert hashlib.sha256(values().astype("<f8").tobytes()).hexdigest()[:16] == digest
