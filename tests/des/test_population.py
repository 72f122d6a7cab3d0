"""The ranges of what can be drawn: bids and DQI of every round lie in them, and reach their ends."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from des.holdings import Lasting
from des.markup import Markup
from des.population import Population, PopulationSpec
from des.secrets import Disclosure
from fl.quality import PUBLISHED


def test_the_ranges_of_bids_and_dqi_are_those_of_all_rounds_of_each_service() -> None:
    """Two services of other numbers of labels, with more pairs of data size and EMD than services."""
    spec = PopulationSpec(40, 1, (20, 50, 80), (0.0, 0.7), 0.05, 0.3)
    population = Population(spec, [10, 3], [PUBLISHED, PUBLISHED], seed=3)
    rounds = [population.draw(number) for number in range(1, 40)]
    for drawn, (lowest, highest) in (
        ([it.bid for it in rounds], population.bid_range),
        ([it.dqi for it in rounds], population.dqi_range),
    ):
        every = np.concatenate(drawn, axis=1)
        np.testing.assert_array_equal(every.min(axis=1), lowest)
        np.testing.assert_array_equal(every.max(axis=1), highest)
    assert population.bid_range[0].shape == (2,)


SPEC = PopulationSpec(4, 1, (20, 50), (0.0, 0.7), 0.05, 0.3)


@pytest.mark.parametrize(
    "change",
    [
        {"cost_noise": 0.1},
        {"disclosure": Disclosure(public_bids=False)},
        {"behaviour": Markup()},
        {"lasting": Lasting(persistence=0.5)},
        {"concentration": 1.0},
    ],
)
def test_rounds_that_depend_on_others_or_have_secrets_are_not_fresh(change: dict[str, Any]) -> None:
    assert Population(SPEC, [10], [PUBLISHED], seed=0).fresh
    assert not Population(replace(SPEC, **change), [10], [PUBLISHED], seed=0).fresh
