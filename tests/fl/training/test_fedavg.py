"""FedAvg against a direct computation."""

import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.training.federation import fedavg


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_models_are_weighted_by_data_size() -> None:
    # 100 images say (1, 0), 300 say (5, -4): (1 * 100 + 5 * 300) / 400 = 4, (0 - 4 * 300) / 400 = -3.
    merged = fedavg([floats(1, 0), floats(5, -4)], [100, 300])
    assert merged.tolist() == [4.0, -3.0]
    assert merged.dtype == np.float32


@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 1000)), min_size=1, max_size=20))
def test_any_models_as_the_definition_says(clients: list[tuple[int, int]]) -> None:
    models = [np.random.default_rng(seed).normal(size=7).astype(np.float32) for seed, _ in clients]
    sizes = [size for _, size in clients]
    expected = np.average(np.array(models, dtype=np.float64), axis=0, weights=sizes)
    np.testing.assert_allclose(fedavg(models, sizes), expected, rtol=1e-6, atol=1e-7)


def test_one_client_is_taken_as_it_is_and_left_as_it_was() -> None:
    model = floats(0.1, -2.5)
    merged = fedavg([model], [7])
    assert merged.tolist() == model.tolist()
    merged[0] = 9
    assert model.tolist() == floats(0.1, -2.5).tolist()


def test_sums_are_taken_in_double_precision() -> None:
    # In single precision 1 + 1e-8 is 1, and the difference would be lost.
    assert fedavg([floats(1), floats(1e-8), floats(-1)], [1, 1, 1])[0] == pytest.approx(1e-8 / 3, rel=1e-6)


def test_a_model_that_diverged_spoils_the_mean_and_warns_of_nothing() -> None:
    merged = fedavg([floats(np.inf, 1), floats(-np.inf, 1)], [1, 1])
    assert np.isnan(merged[0])
    assert merged[1] == 1


@pytest.mark.parametrize(
    ("models", "sizes", "said"),
    [([], [], "hold data"), ([floats(1)], [1, 2], "longer"), ([floats(1)], [0], "hold data")],
)
def test_nonsense_is_refused(models, sizes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fedavg(models, sizes)


def test_models_that_come_one_at_a_time_are_not_kept() -> None:
    last: list[weakref.ref] = []

    def models() -> Iterator[np.ndarray]:
        for value in range(3):
            assert all(model() is None for model in last[:-1])  # the one before is still the caller's variable
            model = floats(value)
            last.append(weakref.ref(model))
            yield model

    assert fedavg(models(), [1, 1, 1]).tolist() == [1.0]
