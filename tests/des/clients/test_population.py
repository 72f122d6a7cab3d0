"""The ranges of what can be drawn: bids and DQI of every round lie in them, and reach their ends."""

from dataclasses import replace

import numpy as np
import pytest

from des.clients.data_tables import Group, PopulationSpec
from des.clients.population import Population
from fl.data.dqi import PUBLISHED
from flmarket.core.errors import InputError


def test_the_ranges_of_bids_and_dqi_are_those_of_all_rounds_of_each_service() -> None:
    """Two services of other numbers of labels, with more pairs of data size and EMD than services."""
    spec = PopulationSpec(1, (Group(40, (20, 50, 80), (0.0, 0.7), 0.05, 0.3),))
    population = Population(spec, [10, 3], [PUBLISHED, PUBLISHED], seed=3)
    rounds = [population.draw(number) for number in range(1, 40)]
    for drawn, (lowest, highest) in (
        ([it.bid for it in rounds], population.bid_range),
        ([it.dqi for it in rounds], population.seen_range),
    ):
        every = np.concatenate(drawn, axis=1)
        np.testing.assert_array_equal(every.min(axis=1), lowest)
        np.testing.assert_array_equal(every.max(axis=1), highest)
    assert population.bid_range[0].shape == (2,)


def test_dqi_parameters_that_give_no_finite_numbers_are_refused() -> None:
    spec = PopulationSpec(1, (Group(4, (100,), (0.2,), 0.05, 0.3),))
    with pytest.raises(InputError, match=r"data quality indicator \(eq. 6\) give values that are not finite"):
        Population(spec, [10], [replace(PUBLISHED, eta2=-1e6)], seed=3)
