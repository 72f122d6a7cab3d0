"""Scenarios of one name are named by the values in which they differ, and forks by their interventions."""

import pytest

from scenarios.file.differences import ScenarioValues, flattened, names_among
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
