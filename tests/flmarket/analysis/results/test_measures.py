"""What a run is judged by: each measure's direction, and values that are worked out by hand."""

from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import flmarket
from flmarket.analysis.results.measures import BUILT_IN, LITERATURE, MEASURES, gini, hhi, jain
from flmarket.analysis.results.run_results import RunResult
from flmarket.analysis.results.setting import RunSetting
from learning.statistics.measure import ALL_MEASURES, MARKET
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectory


def test_every_measure_says_which_way_is_better() -> None:
    assert {name: ALL_MEASURES.load(name).better for name in BUILT_IN} == {
        "final accuracy": 1, "AUC": 1, "target met": 1, "rounds to target": -1, "seconds to target": -1, "waiting": -1,
        "never served": -1, "normalised reward": 1, "spent": 0,
        "cost per point": -1, "served": 0, "refused": -1, "wasted": -1, "income Jain": 1, "income Gini": -1,
        "spending HHI": 0, "client profit": 0, "misreport profit": 0, "overstated": -1, "services Jain": 1,
        "core use": 0, "social welfare": 1, "service utility": 1, "IR violations": -1, "budget use": 0,
        "budget violations": -1, "worst service": 1, "communication": -1, "Shapley correlation": 1,
        "leave-one-out correlation": 1, "envy": -1,
    }  # fmt: skip


HAND = """
name = "hand"
rounds = 3
dqi = "published"
training.model = "logistic"
clients.count = 3
clients.cores = 1
clients.data_size = [100]
clients.emd = [0.2]
clients.cost = { per_sample = 0.05, per_emd = 0.5 }
clients.behaviour.kind = "markup"
services = [
    { name = "a", dataset = "mnist", budget = 10, target_accuracy = 0.9, reward_base = 16.0, policy = "random" },
    { name = "b", dataset = "cifar-10", budget = 2, target_accuracy = 0.5, reward_base = 4.0, policy = "random" },
]
"""


@pytest.fixture
def hand() -> RunResult:
    """Three rounds of two services, of which the second leaves after two."""
    rounds = pd.DataFrame(
        [
            (1, "a", "training", 0.50, 4.0, 10, 6), (1, "b", "training", 0.25, 1.0, 10, 4),
            (2, "a", "training", 0.75, 8.0, 10, 5), (2, "b", "reached", 0.50, 2.0, 2, 2.5),
            (3, "a", "training", 0.75, 8.0, 10, 0), (3, "b", "left", 0.50, 2.0, 0, 0),
        ],
        columns=["round", "service", "status", "accuracy", "reward", "budget", "spent"],
    )  # fmt: skip
    zeros = dict.fromkeys(("wanted", "served", "refused", "offered", "sim_time"), 0)
    rounds = rounds.assign(**zeros, policy="random", test_accuracy=rounds["accuracy"])
    offers = pd.DataFrame(
        [
            (1, "a", 0, 1.0, 6.0, "served"), (1, "b", 1, 5.0, 4.0, "served"), (1, "b", 2, 1.0, None, "dropped"),
            (2, "a", 0, 2.0, 2.0, "served"), (2, "a", 1, 1.0, 3.0, "served"), (2, "b", 0, 2.0, 2.5, "served"),
            (2, "a", 2, 1.0, None, "outbid"),
        ],
        columns=["round", "service", "client", "cost", "paid", "outcome"],
    )  # fmt: skip
    rounds[["budget", "spent"]] *= 1_000_000
    offers[["cost", "paid"]] *= 1_000_000
    offers["core"] = np.where(offers["outcome"] == "outbid", np.nan, 0)
    clients = offers.assign(**dict.fromkeys(("data_size", "reported_size", "emd", "reported_emd"), 1))
    setting = RunSetting(parse(HAND))
    tables = {"offers": offers, "clients": clients}
    return RunResult.of(setting, "random", 0, RunDirectory(Path("hand")), rounds, tables)


def test_measures_of_the_literature_are_those_worked_out_by_hand(hand: RunResult) -> None:
    assert {measure.name: measure.values(hand) for measure in LITERATURE} == {
        "social welfare": {"a": 20 - 4, "b": 5 - 7, MARKET: 14},
        "service utility": {"a": 20 - 11, "b": 5 - 6.5, MARKET: 7.5},
        "IR violations": {"a": 0, "b": 1, MARKET: 1},  # 4 for what cost 5; the client that was paid its cost has none
        "budget use": {"a": 60, "b": 125, MARKET: 125},
        "budget violations": {"a": 0, "b": 1, MARKET: 1},
        "worst service": {MARKET: 50},
        # Logistic regression of 28 x 28 and of 3 x 32 x 32: three times down and up; twice, and once down alone.
        "communication": {"a": 6 * 4 * 7850, "b": 5 * 4 * 30730, MARKET: 6 * 4 * 7850 + 5 * 4 * 30730},
    }
    profit = ALL_MEASURES.load("client profit").values(hand)
    assert profit == {"a": 7, "b": -0.5, MARKET: 6.5}


def test_models_travel_with_the_bytes_that_the_scenario_gives_them(hand: RunResult) -> None:
    first, other = hand.setting.scenario.services
    given = hand.setting.scenario.model_copy(update={"services": (first, other.model_copy(update={"model_bytes": 7}))})
    sizes = ALL_MEASURES.load("communication").values(replace(hand, setting=replace(hand.setting, scenario=given)))
    assert sizes == {"a": 6 * 4 * 7850, "b": 5 * 7, MARKET: 6 * 4 * 7850 + 5 * 7}


def test_a_model_that_is_not_known_here_has_no_bytes(hand: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    models = ["mine", "logistic"], ["mnist", "cifar-10"]
    monkeypatch.setattr("flmarket.analysis.results.measures._models", lambda _: models)
    assert ALL_MEASURES.load("communication").values(hand) == {}


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
    measures = {it.name: it for it in (*MEASURES, *LITERATURE)}
    found = {name: measure.values(run) for name, measure in measures.items()}
    for name, measure in measures.items():
        if name not in BY_REPORTS:
            assert measure.values(stated) == found[name], name
        lowest, highest = measure.limits
        assert all(isfinite(value) and lowest <= value <= highest for value in found[name].values()), name
    for of, welfare in found["social welfare"].items():  # what is paid only changes hands
        assert welfare == pytest.approx(found["service utility"][of] + found["client profit"][of])
    assert not found["IR violations"][MARKET]
    assert not found["budget violations"][MARKET]
    assert found["worst service"][MARKET] <= found["final accuracy"][MARKET]
