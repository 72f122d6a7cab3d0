"""Markets of all kinds that lockstep plays, for tests that play them in lockstep and one after another."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from des.behaviour import BEHAVIOURS
from des.clients.data_tables import Group, PopulationSpec
from des.costs.linear import Linear
from des.market import Market
from des.mechanism import MECHANISMS
from des.schedule import Availability, Change, Conditions, Presence, Schedule
from des.service import ServiceSpec
from des.timeline import Durations
from fl.data.dqi import PUBLISHED
from fl.surrogate.fitted import surrogate_fit
from fl.surrogate.learning_curves import Curve, SurrogateFederation
from scenarios.loader import load

PAPER = load("paper")
CURVES = [Curve.of(surrogate_fit(name, PAPER.training_for(name)).parameters) for name in ("mnist", "fashion-mnist")]


@st.composite
def kinds(draw: st.DrawFn) -> dict[str, Any]:
    """A market apart from its seed: any size, clock and changes in the middle."""
    rounds, count = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    some = draw(st.integers(0, count))  # clients that are not like the rest
    alike = Group(
        count - some,
        data_sizes=draw(st.sampled_from([(100, 200, 300, 400), (200,)])),
        emds=draw(st.sampled_from([(0.4, 0.6, 0.8, 1.0), (0.5, 1.0)])),
        cost=Linear(per_sample=0.025, per_emd=1.0),
        speeds=draw(st.sampled_from([(1.0,), (0.5, 1.0, 2.0)])),
        departure_rate=draw(st.sampled_from([0.0, 0.5])),
    )
    groups = Group(some, (50, 500, 900), (0.2,), Linear(per_sample=0.05, per_emd=2.0), (0.25, 4.0), 0.3), alike
    services = [
        ServiceSpec(
            name=f"s{m}",
            dataset="digits",
            labels=10,
            dqi=replace(PUBLISHED, eta1=draw(st.sampled_from([0.1922, -0.1922]))),
            budget=draw(st.integers(0, 40_000_000)),
            target_accuracy=draw(st.sampled_from([0.2, 0.5, 0.97])),
            reward_base=draw(st.sampled_from([30.0, 100.0])),
            local_epochs=draw(st.integers(1, 2)),
            policy="by hand",
            privileged=True,
            arrival=draw(st.sampled_from([1, 1, 1, 2, 3])),
            total_budget=draw(st.sampled_from([None, None, 30_000_000])),
        )
        for m in range(draw(st.integers(1, 4)))
    ]
    changes = [
        Change(
            round=draw(st.integers(1, 5)),
            budgets={draw(st.sampled_from(services)).name: draw(st.integers(0, 30_000_000))},
            cores=draw(st.sampled_from([None, 1, 3])),
            offline=draw(st.sampled_from([None, frozenset({0})])),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    return {
        "population": PopulationSpec(draw(st.integers(1, 3)), tuple(group for group in groups if group.count)),
        "services": services,
        "timeline": draw(
            st.sampled_from(
                [
                    Durations(0.01, 0.5),
                    Durations(0.01, 0.5, slot=3.0),
                    Durations(0.01, 0.5, deadline=2, download_seconds=0.3),
                ]
            )
        ),
        "rounds": rounds,
        "interventions": changes,
        "availability": draw(st.sampled_from([None, Availability(count, [Presence(0, 1, 3)])])),
        "mechanism": draw(st.sampled_from([("pay-as-offered", {}), ("uniform-price", {})])),
        "behaviour": ("truthful", {}),
        "curves": {spec.name: draw(st.sampled_from(CURVES)) for spec in services},
    }


def factory(kind: dict[str, Any]) -> Callable[[int], Market]:
    budgets = {spec.name: spec.budget for spec in kind["services"]}
    first = Conditions(budgets, kind["population"].cores, availability=kind["availability"])

    def make(seed: int) -> Market:
        return Market(
            replace(kind["population"], behaviour=BEHAVIOURS.create(kind["behaviour"][0], **kind["behaviour"][1])),
            kind["services"],
            kind["timeline"],
            kind["rounds"],
            SurrogateFederation(kind["curves"], seed),
            seed,
            Schedule(first, kind["interventions"]),
            MECHANISMS.create(kind["mechanism"][0], **kind["mechanism"][1]),
        )

    return make


def plain(**changes: Any) -> dict[str, Any]:
    """The paper's market, small."""
    kind: dict[str, Any] = {
        "population": PopulationSpec(
            2, (Group(6, (100, 200, 300, 400), (0.4, 0.6, 0.8, 1.0), Linear(per_sample=0.025, per_emd=1.0)),)
        ),
        "services": [
            ServiceSpec(f"s{m}", "digits", 10, PUBLISHED, 20_000_000, 0.97, 60.0, 1, "by hand", privileged=True)
            for m in range(3)
        ],
        "timeline": Durations(0.001, 0.5),
        "rounds": 4,
        "interventions": [],
        "availability": None,
        "mechanism": ("pay-as-offered", {}),
        "behaviour": ("truthful", {}),
    }
    kind |= changes
    return {"curves": {spec.name: CURVES[0] for spec in kind["services"]}, **kind}
