"""Scenarios of one name are named by the values in which they differ, and forks by their interventions."""

import re

import pytest

from scenarios.file.differences import ScenarioValues, flattened, names_among, values_text
from scenarios.file.schema import Intervention


def market(budget: float = 6, cores: int = 1, policy: str = "lcfa", **other: object) -> dict[str, object]:
    services = [
        {"name": "a", "budget": budget, "policy": policy, "policy_options": {"x": 1}},
        {"name": "b", "budget": 10, "policy": policy},
    ]
    return flattened({"name": "m", "rounds": 5, "clients": {"cores": cores}, "services": services, **other})


@pytest.mark.parametrize(
    ("markets", "names"),
    [
        ([market(6), market(7.5)], ["services.a.budget=6", "services.a.budget=7.5"]),
        (
            [market(6, 1), market(6, 2), market(7, 1)],
            [f"clients.cores={cores}, services.a.budget={budget}" for budget, cores in ((6, 1), (6, 2), (7, 1))],
        ),
        ([market(6, policy="lcfa"), market(7, policy="hqfa")], ["services.a.budget=6", "services.a.budget=7"]),
        ([market(6), market(6), market(7)], ["services.a.budget=7"]),
        (
            [market(policy="lcfa"), market(policy="hqfa")],
            [f"services.a.policy={policy}, services.b.policy={policy}" for policy in ("lcfa", "hqfa")],
        ),
        ([market(name="m"), market(name="other", description="the same")], []),
        ([market(u=1, v=1, w=1, x=1), market(u=2, v=2, w=2, x=2)], []),
    ],
)  # fmt: skip
def test_the_values_that_differ(markets: list[dict[str, object]], names: list[str]) -> None:
    among = names_among({place: ScenarioValues("m", values) for place, values in enumerate(markets)})
    assert [name.text for name in among.values() if name.alone and name.text] == names


def test_of_a_long_list_a_name_has_the_first_values_and_a_hash() -> None:
    """Two that begin alike are told apart, and a short one is whole."""
    prices = [[n / 100 for n in range(40)], [*(n / 100 for n in range(39)), 0.5], [0.1, 0.2]]
    first, second, short = (values_text({"prices": it}) for it in prices)
    assert re.fullmatch(r"prices=\[0, 0\.01, \.\.\. 40 in all, [0-9a-f]{8}\]", first)
    assert first[:25] == second[:25]
    assert first != second
    assert short == "prices=[0.1, 0.2]"


def test_a_fork_is_named_by_its_interventions_beside_the_values_of_its_market() -> None:
    later, more = (Intervention(round=n, key="clients.cores", value=n) for n in (3, 4))
    markets = [(6, ()), (6, (later,)), (6, (later, more)), (7, (later,))]
    among = names_among({place: ScenarioValues("m", market(n), own) for place, (n, own) in enumerate(markets)})
    assert [name.text for name in among.values()] == [
        "services.a.budget=6",
        "services.a.budget=6, clients.cores = 3 from round 3",
        "services.a.budget=6, clients.cores = 3 from round 3, clients.cores = 4 from round 4",
        "services.a.budget=7",
    ]


def test_scenarios_of_other_names_change_nothing_and_a_point_of_a_sweep_is_named_by_its_values_alone() -> None:
    among = names_among({
        "swept": ScenarioValues("m", market(6), sweep={"services.a.budget": 6.0}),
        "other": ScenarioValues("other", market(7)),
    })  # fmt: skip
    assert [(name.text, name.alone) for name in among.values()] == [("services.a.budget=6", True), ("", True)]


def group(name: str, **values: object) -> dict[str, object]:
    return {"cores": 1, "groups": [{"name": name, "count": 8, "data_size": [40, 80], **values}]}


@pytest.mark.parametrize("more", [{}, {"departure_rate": 0.1, "emd": [1.0]}])
def test_points_keep_their_values_beside_a_scenario_with_other_groups_which_is_named_by_their_key(
    more: dict[str, object],
) -> None:
    points = [market(clients={**group("phones", **more), "cores": cores}) for cores in (3, 1, 2)]
    among = names_among({place: ScenarioValues("m", values) for place, values in enumerate([*points, market()])})
    assert [name.text for name in among.values() if name.alone] == [
        *(f"clients.cores={cores}, other clients.groups" for cores in (3, 1, 2)),
        "clients.cores=1",
    ]


def test_a_group_alone_leaves_the_scenario_without_it_its_plain_name() -> None:
    among = names_among({0: ScenarioValues("m", market()), 1: ScenarioValues("m", market(clients=group("phones")))})
    assert [(name.text, name.alone) for name in among.values()] == [("", True), ("other clients.groups", True)]


def test_what_keys_alone_do_not_tell_apart_needs_its_hash_beside_its_values() -> None:
    markets = [market(clients={**group(name), "cores": cores}) for name in ("phones", "laptops") for cores in (1, 2)]
    among = names_among({place: ScenarioValues("m", values) for place, values in enumerate(markets)})
    assert [(name.text, name.alone) for name in among.values()] == [
        (f"clients.cores={cores}, other clients.groups", False) for cores in (1, 2, 1, 2)
    ]


def test_points_keep_their_values_beside_a_scenario_that_differs_in_many_keys_at_once() -> None:
    """Only the point that shares its value with that scenario needs the hash."""
    points = [market(cores=cores, u=1, v=1, w=1, x=1) for cores in (1, 2, 3)]
    among = names_among({
        place: ScenarioValues("m", values) for place, values in enumerate([*points, market(u=2, v=2, w=2, x=2)])
    })  # fmt: skip
    assert [(name.text, name.alone) for name in among.values()] == [
        ("clients.cores=1", False),
        ("clients.cores=2", True),
        ("clients.cores=3", True),
        ("clients.cores=1", False),
    ]


def test_scenarios_of_one_name_are_sorted_by_their_values_and_forks_come_behind() -> None:
    fork = (Intervention(round=3, key="clients.cores", value=4),)
    markets = [(10, ()), (2, fork), (2.5, ()), (2, ())]
    among = names_among({place: ScenarioValues("m", market(n), own) for place, (n, own) in enumerate(markets)})
    assert sorted(among, key=lambda place: among[place].rank) == [3, 1, 2, 0]
