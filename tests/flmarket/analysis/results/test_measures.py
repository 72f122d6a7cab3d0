"""What a run is judged by: each measure's direction, and values that are worked out by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import flmarket
from flmarket.analysis.results.measures import MEASURES, gini, hhi, jain, values


def test_every_measure_says_which_way_is_better() -> None:
    assert {measure.name: measure.better for measure in MEASURES} == {
        "final accuracy": 1, "AUC": 1, "target met": 1, "rounds to target": -1, "normalised reward": 1, "spent": 0,
        "cost per point": -1, "served": 0, "refused": -1, "wasted": -1, "income Jain": 1, "income Gini": -1,
        "spending HHI": 0, "client profit": 0, "misreport profit": 0, "overstated": -1, "services Jain": 1,
        "core use": 0,
    }  # fmt: skip


def test_indices_of_fairness_at_their_ends() -> None:
    assert jain([3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([1, 2, 3]) == pytest.approx(36 / 42)
    assert jain([0, 0]) == 1
    assert gini([2, 2, 2]) == pytest.approx(0)
    assert gini([0, 0, 0, 5]) == pytest.approx(0.75)
    assert gini([1, 2, 3]) == pytest.approx(2 / 9)
    assert gini([0, 0]) == 0
    differences = [abs(a - b) for a in (2, 6, 4) for b in (2, 6, 4)]
    assert gini([2, 6, 4]) == pytest.approx(np.mean(differences) / (2 * 4))
    assert hhi([2, 2, 2, 2]) == pytest.approx(0.25)
    assert hhi([0, 7]) == 1
    assert hhi([1, 3]) == pytest.approx(10 / 16)
    assert hhi([0, 0]) == 0


def test_a_value_that_rounds_to_nothing_has_no_sign() -> None:
    assert MEASURES[0].text(-1e-9) == "0.00"
    assert MEASURES[0].text(-1e-9, "+") == "+0.00"
    assert MEASURES[0].text(-0.006, "+") == "-0.01"


def test_what_services_say_that_clients_are_worth_is_no_money_beyond_the_budget(tmp_path: Path) -> None:
    changes = {"sweep": {}, "market.mechanism": "score-auction"}
    [run] = flmarket.run(flmarket.load("mechanisms", changes), seeds=1, rounds=5, out=tmp_path).runs
    budgets = [service.budget for service in run.setting.scenario.services]
    assert (run["offered"] > budgets).any()
    assert (run.wasted >= 0).all()
    assert (run["spent"] + run.wasted <= budgets).all()


BY_REPORTS = {
    "wasted": "offers are money that is kept for others; where a mechanism keeps the budgets, as far as these go",
    "overstated": "it compares what clients report with what they have",
    "misreport profit": "it is of those whose reports are false",
}


@pytest.mark.parametrize(
    "changes",
    [{}, {"market.mechanism": "score-auction"}, {"clients.behaviour.kind": "markup"}],
    ids=["truthful", "values", "misreports"],
)
def test_no_measure_moves_with_what_is_only_stated(changes: dict[str, object], tmp_path: Path) -> None:
    """Neither with bids that were not paid, nor with values that are no money, nor with images that are reported."""
    scenario = flmarket.load("mechanisms", {"sweep": {}, **changes})
    [run] = flmarket.run(scenario, policies=["random"], seeds=1, rounds=5, out=tmp_path).runs
    offers = run.offers.assign(payment=run.offers["payment"] * 3)
    offers["bid"] = offers["bid"].mask(offers["paid"].isna(), offers["bid"] * 3)
    tables = {"offers": offers}
    if not run.truthful:
        clients = run.tables["clients"]
        tables["clients"] = clients.assign(**{name: clients[name] * 3 for name in ("bid", "reported_size")})
    stated = replace(run, curves={**run.curves, "offered": 3 * run["offered"]}, tables=tables)
    for measure in MEASURES:
        if measure.name not in BY_REPORTS:
            assert values(stated, measure) == values(run, measure), measure.name
