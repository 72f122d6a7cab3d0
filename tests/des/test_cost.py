"""Costs: what work costs each client, by its data, its speed and its private type."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from des.behaviour import BEHAVIOURS
from des.clients.data_tables import Group, PopulationSpec
from des.clients.population import Population
from des.cost import COSTS, Cost, CostError, PrivateType, Work, costs
from des.money import MICRO
from fl.arrays import FloatArray
from fl.data.dqi import PUBLISHED

# cost, its options, (D, EMD, speed, type), what the work costs: worked out by hand
WORKED = [
    ("linear", {"per_sample": 0.05, "per_emd": 1.0}, (100, 0.5, 1.0, 1.0), 4.5),
    ("linear", {"per_sample": 0.05, "per_emd": 1.0}, (100, 0.5, 8.0, 2.0), 9.0),
    ("unit", {}, (100, 0.5, 1.0, 0.03), 3.0),
    ("quality", {}, (100, 0.0, 1.0, 5.0), 5.0),
    ("quality", {}, (900, 0.5, 1.0, 4.0), 2.426123),  # 4 e^-0.5
    # 1e-28 * (1e9)^2 * 1e7 = 0.001 joules an image, at twice the speed four times as many
    ("energy", {}, (100, 0.5, 1.0, 1.0), 0.1),
    ("energy", {"upload": 0.2}, (100, 0.5, 2.0, 3.0), 1.8),
]


@pytest.mark.parametrize(("kind", "options", "work", "money"), WORKED)
def test_a_cost_is_that_of_its_formula(
    kind: str, options: Mapping[str, Any], work: tuple[int, float, float, float], money: float
) -> None:
    size, emd, speed, unit = work
    amounts = costs(
        COSTS.create(kind, **options), np.array([[size]]), np.array([[emd]]), np.array([speed]), np.array([[unit]])
    )
    assert (amounts / MICRO).tolist() == [[money]]


def population(*groups: Group, services: int = 2, seed: int = 5, **spec: Any) -> Population:
    return Population(PopulationSpec(2, groups, **spec), [10] * services, [PUBLISHED] * services, seed)


def clients(kind: str, unit: PrivateType, **others: Any) -> Group:
    return Group(7, (50, 300), (0.2, 0.8), COSTS.create(kind), (0.5, 3.0), unit=unit, **others)


KINDS = list(COSTS.names())
TYPES = [PrivateType(), PrivateType((2.0, 5.0)), PrivateType(choices=(0.0, 1.0, 4.0), per_service=True)]


@pytest.mark.parametrize("unit", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_cost_or_bid_leaves_the_range_that_is_known_beforehand(kind: str, unit: PrivateType) -> None:
    for behaviour, options in (("truthful", {}), ("markup", {}), ("misreport", {"size": 1.0, "emd": -0.5})):
        for groups in (
            [clients(kind, unit), replace(clients("unit", TYPES[1]), speeds=(1.0,))],
            [replace(clients(kind, unit), emds=(), concentration=0.5)],
        ):
            people = population(*groups, behaviour=BEHAVIOURS.create(behaviour, **options), cost_noise=0.3)
            lowest, highest = people.bid_range
            for number in range(1, 20):
                bid = people.draw(number).bid
                assert (bid >= lowest[:, None]).all()
                assert (bid <= highest[:, None]).all()


@pytest.mark.parametrize("unit", TYPES)
def test_a_type_is_drawn_once_and_others_that_join_do_not_change_it(unit: PrivateType) -> None:
    group = clients("unit", unit)
    few = population(group)
    many = population(replace(group, count=20), services=3)
    assert (many.types[:2, :7] == few.types).all()
    low, high = unit.ends
    assert ((few.types >= low) & (few.types <= high)).all()
    for number in (1, 2):
        world = few.draw(number)
        assert world.held.cost / MICRO == pytest.approx(few.types * world.data_size, abs=1e-6)
    alike = (few.types[0] == few.types[1]).all()
    assert alike == (not unit.per_service)


def test_bids_are_made_of_costs_and_profit_counts_the_true_one() -> None:
    """Clients that say they hold twice as much ask for twice as much; what they hold costs them what it costs."""
    lies = BEHAVIOURS.create("misreport", size=1.0)
    world = population(clients("unit", PrivateType((2.0, 5.0))), behaviour=lies).draw(1)
    assert (np.abs(world.bid - 2 * world.held.cost) <= 1).all()  # each is rounded


class Wrong(Cost):
    """A user's own, in which something is wrong."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def amounts(self, work: Work) -> FloatArray:
        return self.answer(work)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda work: np.array([1.0]), r"must return numbers of shape \(2, 7\), not float64 of \(1,\)"),
        (lambda work: work.unit * work.data_size / 0.0 * np.ones((2, 7)), "a cost is not finite"),
        (lambda work: 2e7 * np.ones((2, 7)), "a cost of 20000000.000000 is above the limit of 10,000,000"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_cost_of_ones_own_that_cannot_be_meant_is_named_with_its_line(answer: Any, problem: str) -> None:
    size = np.full((2, 7), 100)
    with pytest.raises(CostError, match=rf"cost Wrong.amounts\(\) \(.*test_cost.py:\d+\): {problem}"):
        costs(Wrong(answer), size, size / 1000, np.ones(7), np.ones((2, 7)))


class Dip(Cost):
    """Negative at a speed between the ends of the range, where the range of costs cannot tell it."""

    def amounts(self, work: Work) -> FloatArray:
        return np.where(work.speed == 1.0, -1.0, 1.0) * work.unit * work.data_size


def test_a_negative_cost_of_what_is_held_is_named_whether_costs_are_tabulated_or_not() -> None:
    where = r"\(.*test_cost.py:\d+\): a cost is negative, that of (50|300) images"
    group = clients("unit", PrivateType((1.0, 2.0)))
    with pytest.raises(CostError, match=rf"cost Wrong.amounts\(\) {where}"):
        population(replace(group, cost=Wrong(lambda work: -1.0 * work.unit * work.data_size)))
    people = population(replace(group, cost=Dip(), speeds=(0.5, 1.0, 2.0), count=30))
    with pytest.raises(CostError, match=rf"cost Dip.amounts\(\) {where}"):
        people.draw(1)


def test_what_is_claimed_may_be_worth_more_than_it_costs() -> None:
    """Clients that say their data are worse than they are ask for nothing at least."""
    linear = COSTS.create("linear", per_sample=0.01, per_emd=1.0)
    lies = BEHAVIOURS.create("misreport", emd=4.0)
    group = Group(7, (50,), (0.2,), linear, unit=PrivateType((2.0, 5.0)))
    world = population(group, behaviour=lies).draw(1)
    assert (world.held.cost > 0).all()
    assert (world.bid == 0).all()
