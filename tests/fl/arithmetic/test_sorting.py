"""Beginnings of an order are those of the whole order."""

import numpy as np
import pytest

from des.mechanism import FIRST, beginnings


@pytest.mark.parametrize("size", [0, 1, FIRST, FIRST + 1, 10_000])
@pytest.mark.parametrize("values", [1, 16, 10**9])
def test_beginnings_are_those_of_the_stable_order(size: int, values: int) -> None:
    keys = np.random.default_rng(size).integers(0, values, size)
    found = list(beginnings(keys))
    order = keys.argsort(kind="stable").tolist()
    assert [it.tolist() for it in found] == [order[: len(it)] for it in found]
    assert len(found[-1]) == size
    assert all(len(it) > FIRST for it in found[:-1])
