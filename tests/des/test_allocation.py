"""Who gets a client's cores: by the compiled extension or by NumPy, the same offers win the same cores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des import allocation
from des.allocation import NO_CORE, allocate
from fl.arrays import FloatArray, IntArray
from support.implementations import without_extension
from support.tiers import examples


def draw(clients: IntArray) -> FloatArray:
    """Random numbers of clients and services, always the same."""
    return np.random.default_rng(0).random((50, 6))[clients]


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


@examples(200)
@given(
    payments=st.dictionaries(  # (service, client) -> what it pays
        st.tuples(st.integers(0, 5), st.integers(0, 3)), st.integers(0, 4), max_size=24
    ),
    cores=st.integers(1, 4),
    shuffle=st.randoms(use_true_random=False),
    ties=st.permutations(range(6)),
)
def test_allocation_is_what_sorting_by_hand_gives(payments, cores, shuffle, ties) -> None:
    wanted = list(payments)
    shuffle.shuffle(wanted)
    contested = set()

    def tie_order(clients: np.ndarray) -> np.ndarray:
        contested.update(clients.tolist())
        return np.stack([np.roll(ties, client) for client in clients])

    columns = np.array([(*pair, payments[pair]) for pair in wanted], dtype=np.int64).reshape(-1, 3).T
    won = allocate(*columns, cores, tie_order)
    with without_extension(allocation):
        by_numpy = allocate(*columns, cores, tie_order)
    assert (won.dtype, won.tolist()) == (by_numpy.dtype, by_numpy.tolist())
    core_of = dict(zip(wanted, won.tolist(), strict=True))
    for client in range(4):
        ranked = sorted(
            (pair for pair in wanted if pair[1] == client),
            key=lambda pair: (-payments[pair], np.roll(ties, pair[1])[pair[0]]),
        )
        assert {pair for pair in ranked if core_of[pair] != NO_CORE} == set(ranked[:cores])
        served = sorted(ranked[:cores], key=lambda pair: core_of[pair])
        assert [payments[pair] for pair in served] == [payments[pair] for pair in ranked[:cores]]
        # Chance decides only where the last core and the next in line pay the same.
        straddles = len(ranked) > cores and payments[ranked[cores - 1]] == payments[ranked[cores]]
        assert (client in contested) == straddles
