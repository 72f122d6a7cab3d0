"""Sums and products whose bits do not depend on the order in which a library adds."""

import math
from itertools import permutations

import numpy as np
import pytest

from fl.arithmetic.ordered_sums import column_sums, exact_product, inverse, mean, product, quantile
from fl.arithmetic.streams import stream


def matrices(terms: int, precision: type) -> tuple[np.ndarray, np.ndarray]:
    rng = stream(0, "test", terms)
    return rng.normal(size=(9, terms)).astype(precision), rng.normal(size=(terms, 7)).astype(precision)


@pytest.mark.parametrize("terms", [1, 2, 15, 64, 120, 1000])
def test_exact_products_are_products_with_about_the_precision_of_float32(terms: int) -> None:
    left, right = matrices(terms, np.float32)
    expected = left.astype(float) @ right.astype(float)
    scale = np.abs(left).max(axis=1, keepdims=True) * np.abs(right).max()
    precision = 2.0 ** -((53 - terms.bit_length()) // 2)
    assert (np.abs(exact_product(left, right) - expected) <= 2 * terms * scale * precision).all()


@pytest.mark.parametrize("terms", [1, 15, 64, 120, 1000])
def test_no_order_of_the_terms_changes_a_bit_of_an_exact_product(terms: int) -> None:
    left, right = matrices(terms, np.float32)
    found = exact_product(left, right)
    for n in range(20):
        order = stream(1, "test", n).permutation(terms)
        assert np.array_equal(exact_product(left[:, order], right[order]), found)


def test_stacked_matrices_are_multiplied_as_alone() -> None:
    pairs = [matrices(terms, np.float32) for terms in (8, 8)]
    left, right = (
        np.stack([scale * pair[side] for scale, pair in zip((1, 1000), pairs, strict=True)]) for side in (0, 1)
    )
    found = exact_product(left, right)
    assert all(np.array_equal(found[i], exact_product(left[i], right[i])) for i in range(2))
    rows = exact_product(left[:, :3], right)  # nor does a row depend on the others
    assert np.array_equal(rows, found[:, :3])


def test_products_of_zeros_and_of_nothing() -> None:
    assert not exact_product(np.zeros((3, 4)), np.zeros((4, 2))).any()
    assert exact_product(np.zeros((0, 4)), np.ones((4, 2))).shape == (0, 2)


def test_small_products_have_their_terms_added_in_order() -> None:
    left, right = matrices(4, np.float64)
    expected = [
        [((a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]) + a[3] * b[3] for b in right.T.tolist()] for a in left.tolist()
    ]
    assert product(left, right).tolist() == expected


def test_means_and_sums_are_exact() -> None:
    values = [1e16, 1.0, -1e16, 3.0, 1e-3]
    means = {mean(np.array(order)) for order in permutations(values)}
    assert means == {math.fsum(values) / 5}
    assert column_sums(np.array([values, values[::-1]]).T).tolist() == [math.fsum(values)] * 2
    assert column_sums(np.zeros((0, 3))).tolist() == [0.0] * 3


@pytest.mark.parametrize("part", [0.0, 0.3, 0.5, 0.95, 1.0])
def test_quantiles_are_numpys(part: float) -> None:
    for count in (1, 2, 7, 20):
        values = stream(2, "test", count).normal(size=count)
        assert quantile(values, part) == pytest.approx(np.quantile(values, part), rel=1e-14)


def test_an_inverse() -> None:
    root = stream(3, "test").normal(size=(4, 4))
    matrix = root @ root.T + np.eye(4)
    np.testing.assert_allclose(inverse(matrix) @ matrix, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(inverse(matrix), np.linalg.inv(matrix), rtol=1e-9)
