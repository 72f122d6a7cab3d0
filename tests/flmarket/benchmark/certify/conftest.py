"""Hand-made markets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from des.mechanism import MECHANISMS
from des.money import to_micro
from flmarket.benchmark.certify.players import Bench
from flmarket.benchmark.certify.sampling import AMPLE, SampledMarket

MakeBench = Callable[..., Bench]


@pytest.fixture
def bench() -> MakeBench:
    """Makes a market under a mechanism: values and costs in money, a row for each service."""

    def make(
        mechanism: str,
        values: list[list[float]],
        costs: list[list[float]],
        budgets: list[float] | None = None,
        cores: int = 1,
        **options: Any,
    ) -> Bench:
        worth, cost = to_micro(np.array(values)), to_micro(np.array(costs))
        money = np.full(len(worth), AMPLE) if budgets is None else to_micro(np.array(budgets))
        return Bench(MECHANISMS.create(mechanism, **options), SampledMarket(0, worth, cost, money, cores))

    return make
