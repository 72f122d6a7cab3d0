"""Sampled markets: functions of the seed and their number, of the sizes that were asked for."""

import numpy as np
import pytest

from flmarket.benchmark.certify.sampling import (
    AMPLE,
    COSTS,
    LEAST_BID,
    MOST_BID,
    TICK,
    VALUES,
    Dice,
    Sizes,
    sample,
)


@pytest.mark.parametrize("number", range(20))
def test_markets_are_small_and_their_bids_are_steps_that_a_scenario_can_show(number: int) -> None:
    market, again = sample(Sizes(), 0, number), sample(Sizes(), 0, number)
    assert np.array_equal(market.values, again.values)
    assert np.array_equal(market.costs, again.costs)
    assert np.array_equal(market.budgets, again.budgets)
    services, clients = market.values.shape
    assert 2 <= services <= 4
    assert 2 <= clients <= 5
    assert market.cores in (1, 2)
    assert (market.costs % TICK == 0).all()
    assert LEAST_BID <= COSTS[0] <= market.costs.min() <= market.costs.max() <= COSTS[1] <= MOST_BID
    assert VALUES[0] <= market.values.min() <= market.values.max() <= VALUES[1] < MOST_BID
    assert (market.budgets <= market.values.sum(axis=1)).all()


def test_sizes_can_be_given_and_budgets_that_never_bind() -> None:
    market = sample(Sizes(services=3, clients=1, cores=2, budgets=False), 0, 0)
    assert market.values.shape == (3, 1)
    assert market.cores == 2
    assert market.budgets.tolist() == [AMPLE] * 3


def test_dice_are_keyed_by_their_purpose() -> None:
    def throws(*purpose: str | int) -> list[int]:
        dice = Dice(0, *purpose)
        return [dice.between(1, 6) for _ in range(300)]

    assert throws("services", 1) == throws("services", 1)
    assert throws("services", 1) != throws("clients", 1)
    assert set(throws("services", 1)) == {1, 2, 3, 4, 5, 6}
    assert sorted(Dice(0, "order").order(9)) == list(range(9))
