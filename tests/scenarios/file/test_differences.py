"""Scenarios of one name are named by the values in which they differ."""

import pytest

from scenarios.file.differences import flattened, told_apart


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
    assert list(told_apart(dict(enumerate(markets))).values()) == names
