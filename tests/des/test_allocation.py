"""Who gets a client's cores: by the compiled extension or by NumPy, the same offers win the same cores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des import allocation
from des.allocation import NO_CORE, allocate
from fl.arrays import FloatArray, IntArray
from support.implementations import without_extension


def draw(clients: IntArray) -> FloatArray:
    """Random numbers of clients and services, always the same."""
    return np.random.default_rng(0).random((50, 6))[clients]


offers = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6), st.integers(-2, 3)), unique_by=lambda it: it[:2])


@given(offers=offers, cores=st.integers(1, 4))
def test_both_versions_allocate_the_same_cores(offers: list[tuple[int, int, int]], cores: int) -> None:
    """Payments from a few, so that many of them are equal; services in any order."""
    columns = np.array(offers, dtype=np.int64).reshape(-1, 3).T
    found = allocate(*columns, cores, draw)
    with without_extension(allocation):
        expected = allocate(*columns, cores, draw)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    for client in set(columns[1].tolist()):
        won = found[(columns[1] == client) & (found != NO_CORE)]
        assert sorted(won.tolist()) == list(range(min(cores, int((columns[1] == client).sum()))))


def test_payments_that_are_not_whole_numbers_are_not_cut() -> None:
    core = allocate(np.array([0, 1]), np.array([4, 4]), np.array([1.2, 1.7]), 1, draw)  # type: ignore[arg-type]
    assert core.tolist() == [NO_CORE, 0]


def test_the_extension_refuses_what_does_not_fit() -> None:
    if allocation._native is None:
        pytest.skip("the extension is not built")
    one, two = np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64)
    for services, clients, cores in ((one, two, 1), (two, two, 0), (two, two - 1, 1)):
        with pytest.raises(ValueError, match="must fit each other"):
            allocation._native.highest(services, clients, two, cores, two.copy())
