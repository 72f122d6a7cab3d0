"""Groups of clients that behave in their own ways in one market."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from des.behaviour import BEHAVIOURS, Behaviour, Outcomes, Setting
from des.behaviours.adaptive import Adaptive
from des.behaviours.markup import Markup
from des.behaviours.misreport import Misreport
from des.behaviours.ring import Ring
from des.behaviours.truthful import Truthful
from des.clients.data_tables import Group, PopulationSpec
from des.clients.mixture import Mixture
from des.clients.population import Population
from des.costs.linear import Linear
from des.money import MicroArray
from fl.data.dqi import PUBLISHED
from support.tiers import examples

SETTING = Setting(seed=3, services=2, clients=6, cores=1, highest=np.array([9_000_000, 9_000_000]))
COSTS = np.arange(1, 13).reshape(2, 6) * 1_000_000
EXAMPLES: dict[str, dict[str, Any]] = {
    "truthful": {},
    "markup": {"share": [0.1, 0.5]},
    "adaptive": {"exploration": 0.5},
    "misreport": {"size": 0.5, "share": 0.5},
    "ring": {"size": 3},
}


def made(kind: str) -> Behaviour:
    return BEHAVIOURS.create(kind, **EXAMPLES[kind])


def played(behaviour: Behaviour, costs: MicroArray, rounds: int = 4) -> list[Any]:
    """What clients bid in each round, and who misreports; all of them serve service 0, which pays what they ask."""
    behaviour.begin(replace(SETTING, clients=costs.shape[1]))
    return list(map(np.ndarray.tolist, continued(behaviour, costs, range(1, rounds + 1))))


def continued(behaviour: Behaviour, costs: MicroArray, rounds: range) -> list[Any]:
    found, clients = [], np.arange(costs.shape[1])
    for number in rounds:
        bids, liars = behaviour.bids(number, costs), behaviour.misreporting(number)
        found.append(np.vstack([bids, liars if behaviour.misreports and liars is not None else 0 * clients]))
        outcomes = Outcomes(0 * clients, clients, clients >= 0, bids[0], costs[0])
        behaviour.close(number, outcomes)
    return found


def test_each_group_bids_in_its_own_way() -> None:
    """By hand: 1 and 2 as they are; 3 and 4 half as much again; the ring of the last two asks 6, and 7.2 as a cover."""
    mixed = Mixture([Truthful(), Markup(share=0.5), Ring(size=2)], [2, 2, 2])
    mixed.begin(SETTING)
    bids = mixed.bids(1, COSTS)[0].tolist()
    assert bids[:4] == [1_000_000, 2_000_000, 4_500_000, 6_000_000]
    assert sorted(bids[4:]) == [6_000_000, 7_200_000]
    assert [end.tolist() for end in mixed.bid_range(COSTS[:, 0], COSTS[:, 5])] == [
        [1_000_000, 7_000_000],
        [10_800_000, 18_000_000],
    ]


def test_clients_learn_from_offers_to_their_own_group() -> None:
    alone, elsewhere = Adaptive(), Adaptive()
    mixed = Mixture([Truthful(), elsewhere, Truthful()], [2, 3, 1])
    mixed.begin(SETTING)
    alone.begin(replace(SETTING, clients=3, group=np.array([2, 3, 4])))
    served = np.array([True, True, True])
    alone.close(1, Outcomes(np.array([1]), np.array([2]), served[:1], np.array([11_000_000]), np.array([9_000_000])))
    mixed.close(
        1,
        Outcomes(
            np.array([0, 1, 1]),
            np.array([0, 4, 5]),
            served,
            np.array([2_000_000, 11_000_000, 12_000_000]),
            np.array([1_000_000, 9_000_000, 9_000_000]),
        ),
    )
    assert alone.state() == elsewhere.state()
    assert len({tuple(row) for row in alone.state()["weights"]}) == 2


def test_groups_that_misreport_leave_the_data_of_truthful_ones_as_they_are() -> None:
    groups = tuple(Group(count, (100, 200), (0.4, 0.8), Linear(per_sample=0.025)) for count in (3, 4, 3))
    mixed = Mixture([Truthful(), Misreport(size=0.5), Misreport(emd=-0.5)], [3, 4, 3])
    world = Population(PopulationSpec(1, groups, mixed), [10, 10], [PUBLISHED] * 2, seed=5).draw(1)
    bias = world.data_size / world.held.data_size
    assert (bias == [[1.0] * 3 + [1.5] * 4 + [1.0] * 3] * 2).all()
    assert (world.emd == world.held.emd).all(axis=0).tolist() == [True] * 7 + [False] * 3


@given(st.sampled_from(sorted(EXAMPLES)), st.integers(1, 12))
@examples(25)
def test_a_mixture_of_one_group_is_that_behaviour(kind: str, clients: int) -> None:
    costs = np.arange(1, 2 * clients + 1).reshape(2, clients) * 700_001
    assert played(Mixture([made(kind)], [clients]), costs) == played(made(kind), costs)
    one = made(kind)
    shared = Mixture([one, one], [1, clients - 1]) if clients > 1 else Mixture([one], [1])
    assert played(shared, costs) == played(made(kind), costs)


@given(st.lists(st.tuples(st.sampled_from(sorted(EXAMPLES)), st.integers(1, 5)), min_size=2, max_size=5))
@examples(25)
def test_a_group_that_is_added_changes_nobody_else_s_bids(groups: list[tuple[str, int]]) -> None:
    kinds, counts = zip(*groups, strict=True)
    costs = np.arange(1, 2 * sum(counts) + 1).reshape(2, sum(counts)) * 700_001
    more = played(Mixture([*map(made, kinds)], counts), costs)
    before = sum(counts[:-1])
    fewer = played(Mixture([*map(made, kinds[:-1])], counts[:-1]), costs[:, :before])
    assert np.array_equal(np.array(more)[:, :, :before], fewer)


@given(st.sampled_from(["markup", "adaptive", "misreport"]), st.sampled_from(sorted(EXAMPLES)))
@examples(10)
def test_clients_that_get_a_behaviour_of_their_own_change_nobody_else_s_bids(shared: str, own: str) -> None:
    """They stand between others that go on as before, with the draws that they had."""
    rest = made(shared)
    mixed = Mixture([rest, made(own), rest], [2, 2, 2])
    others = [0, 1, 4, 5]
    assert np.array_equal(
        np.array(played(mixed, COSTS))[:, :, others], np.array(played(made(shared), COSTS))[..., others]
    )


def test_groups_of_one_kind_draw_for_themselves() -> None:
    mixed = Mixture([made("markup"), made("markup")], [3, 3])
    shares = np.array(played(mixed, np.full((2, 6), 10_000_000))[0][0])
    assert len(set(shares.tolist())) == 6


@given(st.lists(st.sampled_from(sorted(EXAMPLES)), min_size=1, max_size=3), st.integers(1, 3))
@examples(10)
def test_a_mixture_goes_on_from_its_state(kinds: list[str], counts: int) -> None:
    costs = np.arange(1, 2 * len(kinds) * counts + 1).reshape(2, -1) * 700_001
    first, second = (Mixture([*map(made, kinds)], [counts] * len(kinds)) for _ in range(2))
    played(first, costs, 3)
    second.begin(replace(SETTING, clients=costs.shape[1]))
    second.restore(json.loads(json.dumps(first.state())))
    assert np.array_equal(continued(second, costs, range(4, 6)), continued(first, costs, range(4, 6)))
