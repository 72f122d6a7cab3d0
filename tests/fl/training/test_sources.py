"""Aggregators and triggers held against the formulas of the papers that they name; docs/fidelity.md lists them."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.training.aggregator import AGGREGATORS, Updates, aggregate
from fl.training.trigger import TRIGGERS, model_of

OLD = np.array([2.0, 0.0], dtype=np.float32)
NONE = np.zeros(3, dtype=np.float32)


# ---- krum: Blanchard et al. (2017)


@given(st.integers(3, 9), st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 0.3, 0.49]))
def test_krum_has_the_lowest_sum_of_squared_distances_to_its_n_less_f_less_2_nearest(
    count: int, seed: int, share: float
) -> None:
    """The score as a minimum over all choices of n - f - 2 others; f is the share of n, and 2 f + 2 < n."""
    models = np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)
    f = min(int(share * count + 1e-9), (count - 3) // 2)
    apart = np.square(models[:, None].astype(np.float64) - models[None]).sum(axis=2)
    scores = [
        min(apart[i, list(near)].sum() for near in combinations([j for j in range(count) if j != i], count - f - 2))
        for i in range(count)
    ]
    chosen = aggregate(AGGREGATORS.create("krum", share=share), Updates(iter(models), [1] * count, NONE), "round 1")
    assert scores[int(np.abs(models - chosen).sum(axis=1).argmin())] == pytest.approx(min(scores), rel=1e-6)
    assert np.abs(models - chosen).sum(axis=1).min() == 0


# ---- median and trimmed-mean: Yin et al. (2018)


@given(st.integers(3, 12), st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.25, 0.4]))
def test_median_and_trimmed_mean_are_taken_parameter_by_parameter(count: int, seed: int, share: float) -> None:
    """Of each parameter the median; and the mean without the ``share`` of n lowest and as many highest values."""
    models = np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)
    cut = int(share * count + 1e-9)
    trimmed = [np.mean(sorted(column.tolist())[cut : count - cut]) for column in models.T]
    for kind, options, expected in (
        ("median", {}, np.median(models.astype(np.float64), axis=0)),
        ("trimmed-mean", {"share": share}, trimmed),
    ):
        new = aggregate(AGGREGATORS.create(kind, **options), Updates(iter(models), [1] * count, NONE), "round 1")
        assert new.tolist() == pytest.approx(np.asarray(expected).tolist(), rel=1e-5, abs=1e-6)


# ---- fedbuff: Nguyen et al. (2022)

CHANGES = np.array([[4.0, 0.0], [0.0, 2.0], [-1.0, 1.0]], dtype=np.float32)
STALENESS = (3, 0, 8)  # which count 1/2, 1 and 1/3


def buffered(sizes: Sequence[int]) -> list[float]:
    """Return the new model that three buffered updates make, each of which began with another model."""
    begun = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 5.0]], dtype=np.float32)
    made = TRIGGERS.create("fedbuff", buffer=3)
    brought = [
        model_of(made, start + change, start, OLD, late)
        for start, change, late in zip(begun, CHANGES, STALENESS, strict=True)
    ]
    return aggregate(AGGREGATORS.create("fedavg"), Updates(iter(brought), list(sizes), OLD), "round 1").tolist()


def test_a_buffer_of_equal_clients_is_the_server_s_step_of_fedbuff() -> None:
    """``w + (1 / K) sum of s(tau) change``, at a server rate of 1, with ``s(tau) = 1 / sqrt(1 + tau)``."""
    weights = [1 / np.sqrt(1 + late) for late in STALENESS]
    step = sum(weight * change for weight, change in zip(weights, CHANGES, strict=True)) / 3
    assert buffered([50, 50, 50]) == pytest.approx((OLD + step).tolist(), rel=1e-6)


def test_a_buffer_is_weighted_by_data_sizes_and_fedbuff_s_is_not() -> None:
    """The first change, 1/2 of 4, counts 50 / 100 in place of 1/3: the step of its parameter is .92, not .56."""
    assert buffered([50, 25, 25])[0] - OLD[0] == pytest.approx(0.5 * 2 - 0.25 * (1 / 3), rel=1e-6)
    assert buffered([1, 1, 1])[0] - OLD[0] == pytest.approx((2 - 1 / 3) / 3, rel=1e-6)
