"""Groups of clients: each draws from lists of its own, and changes nothing for the others."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from des.clients.data_tables import Group, Lasting, PopulationSpec
from des.clients.population import Population
from des.costs.linear import Linear
from des.money import MICRO
from fl.data.dqi import PUBLISHED

OTHERS = Group(5, (100, 200, 300), (0.4, 0.8), Linear(per_sample=0.025, per_emd=1.0), (0.5, 1.0, 2.0), 0.3)
SERVERS = Group(3, (700, 900), (0.0,), Linear(per_sample=0.01), (8.0,))
PHONES = Group(4, (50,), (0.2, 0.6), Linear(per_sample=0.1, per_emd=-2.0), (0.1, 0.2), 0.9)
REST = slice(7, None)

MIXED = replace(OTHERS, emds=(), concentration=0.5)
EVEN = replace(SERVERS, emds=(), concentration=1000.0)


def population(*groups: Group, **spec: Any) -> Population:
    return Population(PopulationSpec(2, groups, **spec), [10, 3], [PUBLISHED] * 2, seed=5)


@pytest.mark.parametrize("lasting", [Lasting(), Lasting(0.5, 0.2)])
@pytest.mark.parametrize(
    ("others", "groups", "noise"), [(OTHERS, (SERVERS, PHONES), 0.2), (MIXED, (replace(EVEN, count=7),), 0.0)]
)
def test_clients_of_one_group_meet_what_they_meet_where_all_are_of_it(
    others: Group, groups: tuple[Group, ...], noise: float, lasting: Lasting
) -> None:
    one = population(replace(others, count=12), lasting=lasting, cost_noise=noise)
    other = population(*groups, others, lasting=lasting, cost_noise=noise)
    assert one.speed[REST].tolist() == other.speed[REST].tolist()
    for number in range(1, 30):
        before, after = one.draw(number), other.draw(number)
        for name in ("data_size", "emd", "dqi", "bid"):
            np.testing.assert_array_equal(getattr(before, name)[:, REST], getattr(after, name)[:, REST])
        for client in range(7, 12):
            assert one.departs(number, client) == other.departs(number, client)
            for m in range(2):
                assert one.held(number).jobs("a", m, [client]) == other.held(number).jobs("a", m, [client])


def test_each_group_draws_from_lists_of_its_own() -> None:
    people = population(SERVERS, PHONES, OTHERS)
    rounds = [people.draw(number) for number in range(1, 60)]
    for group, own in ((SERVERS, slice(0, 3)), (PHONES, slice(3, 7)), (OTHERS, REST)):
        size = np.concatenate([it.data_size[:, own] for it in rounds], axis=1)
        emd = np.concatenate([it.emd[:, own] for it in rounds], axis=1)
        bid = np.concatenate([it.bid[:, own] for it in rounds], axis=1)
        assert set(size.ravel().tolist()) == set(group.data_sizes)
        assert set(emd[0].round(6).tolist()) == set(group.emds)
        cost = group.cost
        assert isinstance(cost, Linear)
        assert bid / MICRO == pytest.approx(cost.per_sample * size - cost.per_emd * emd, abs=1e-6)
        assert set(people.speed[own].tolist()) <= set(group.speeds)
        left = [people.departs(number, client) for number in range(1, 400) for client in range(12)[own]]
        assert np.mean([it is not None for it in left]) == pytest.approx(group.departure_rate, abs=0.04)
    lowest, highest = people.bid_range
    every = np.concatenate([it.bid for it in rounds], axis=1)
    np.testing.assert_array_equal([every.min(axis=1), every.max(axis=1)], [lowest, highest])
    assert people.data_sizes == {50, 100, 200, 300, 700, 900}


def test_a_group_has_label_mixes_of_its_own_concentration() -> None:
    people = population(EVEN, replace(MIXED, count=9))
    worlds = [people.draw(number) for number in range(1, 20)]
    even, lopsided = (np.concatenate([it.emd[0, own] for it in worlds]) for own in (slice(0, 3), slice(3, None)))
    assert even.max() < 0.2 < 0.5 < lopsided.mean()
    lowest, highest = people.bid_range
    assert all((lowest <= it.bid.min(axis=1)).all() and (it.bid.max(axis=1) <= highest).all() for it in worlds)
