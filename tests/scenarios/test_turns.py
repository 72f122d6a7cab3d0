"""Scenarios in which clients come one after another: played, resumed, verified, forged, and refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flmarket
from flmarket.analysis.log_frames import lines_of
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.explain import Explanation
from learning.lockstep.market_kinds import LockstepError, curves_of
from scenarios.build import Shelf, market_factory
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.running.runner import execute
from support.runs import RESULTS, Row, change, edit, interrupt, planned, played, table

IN_TURN = {
    "training.backend": "surrogate", "rounds": 4, "market.impressions": "sequential", "services.*.policy": "greedy"
}  # fmt: skip


def in_turn(**changes: Any) -> Scenario:
    return load("quickstart", {**IN_TURN, **changes})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return played(in_turn(), tmp_path_factory.mktemp("turns"))


def test_services_decide_on_each_client_and_the_run_is_verified(run: RunDirectory) -> None:
    verdict, decisions = verify(run), [row for row in table(run.path, "events") if row["event"] == "decision"]
    assert (verdict.problems, verdict.unchecked) == ([], [])
    assert sum(row["round"] == "1" for row in decisions) == 3 * 16  # services and clients


@pytest.mark.parametrize(
    "changes",
    [
        {"market.mechanism": "uniform-price", "clients.departure_rate": 0.2},
        {"market.contract_rounds": 2, "services.digits.total_budget": 30},
        {"clients.groups": [{"name": "few", "count": 5, "services": ["digits"]}], "clients.behaviour.kind": "adaptive"},
        {"services.*.policy": "outbid"},
    ],
)
def test_whatever_else_is_asked_for_a_run_is_verified(changes: dict[str, Any], tmp_path: Path) -> None:
    assert verify(played(in_turn(**changes), tmp_path)).problems == []


def test_a_run_that_was_killed_resumes_to_the_same_bytes(run: RunDirectory, tmp_path: Path) -> None:
    plan, shelf = planned(in_turn(), tmp_path), Shelf()
    interrupt(plan, shelf, 2)
    execute(plan, shelf, workers=0)
    for name in RESULTS:
        assert (plan.directory.path / name).read_bytes() == (run.path / name).read_bytes()


def other_order(rows: list[Row]) -> None:
    at = next(i for i in range(len(rows) - 1) if rows[i]["service"] == rows[i + 1]["service"])
    rows[at], rows[at + 1] = rows[at + 1], rows[at]


def one_decision_less(rows: list[Row]) -> None:
    rows.remove(next(row for row in rows if row["event"] == "decision" and float(row["amount"]) == 0))


@pytest.mark.parametrize(
    ("name", "how", "problem"),
    [
        ("offers", other_order, "offers are not in the order in which clients come"),
        ("events", one_decision_less, "services do not decide on one client after another, as they offer"),
    ],
)
def test_forged_turns_are_found(name: str, how: Callable[[list[Row]], None], problem: str, tmp_path: Path) -> None:
    forged = played(in_turn(), tmp_path)
    edit(forged.path, name, how)
    assert any(problem in text for text in verify(forged).problems)


def test_an_offer_that_is_not_covered_when_its_turn_comes_is_found(tmp_path: Path) -> None:
    forged = played(in_turn(), tmp_path)
    change(forged.path, "offers", {"payment": "1000.000000"}, lambda row: row["outcome"] == "outbid")
    assert any("offers 1000.000000, which it does not have" in text for text in verify(forged).problems)


def test_an_offer_of_money_that_earlier_clients_have_taken_is_found(tmp_path: Path) -> None:
    """A budget buys about five clients, so that half of it is gone when the last but one is lost."""
    forged = played(in_turn(), tmp_path)
    served = [row["round"] for row in table(forged.path, "offers") if row["service"] == "digits" and row["paid"]]
    budget = table(forged.path, "rounds")[0]["budget"]
    late = [row for row in table(forged.path, "offers") if row["service"] == "digits" and row["round"] == served[-1]][
        -1
    ]
    change(forged.path, "offers", {"payment": budget}, lambda row: row == late)
    assert any(f"offers {budget}, which it does not have" in text for text in verify(forged).problems)


def test_the_best_set_of_a_round_is_not_claimed(run: RunDirectory) -> None:
    said = " ".join(Explanation(Logs.read_whole(run), 2, "digits").sentences())
    assert "this run is cleared by pay-as-offered, client after client" in said


def test_it_is_said_who_outbid_a_service_at_what_price_and_whom_it_had_no_money_for(tmp_path: Path) -> None:
    """Worked out again from offers.csv, in whose order clients come, and from the bids of round 2."""
    second = played(in_turn(**{"market.mechanism": "uniform-price", "services.*.policy": "outbid"}), tmp_path)
    logs, name = Logs.read_whole(second), "scribbles"
    said, offers = list(Explanation(logs, 2, name).sentences()), list(lines_of(logs.offers_of(2)))
    lost = [it for it in offers if it.service == name and it.outcome == "outbid"]
    assert lost
    for it in lost:
        rivals = {other.service for other in offers if other.client == it.client and other.outcome == "served"}
        [line] = [line for line in said if line.startswith(f"Client {it.client}: ")]
        assert re.search(rf": (outbid by|lost the draw against) ({'|'.join(rivals)})[:,]", line), line
    own = {it.client: it for it in offers if it.service == name}
    left, dear, bids = 20_000_000, 0, logs.world(2).bid[logs.places[name]]
    for client in logs.turns(2):
        dear += client not in own and bids[client] > left
        left -= own[client].paid if client in own and own[client].outcome == "served" else 0
    assert dear > 0
    came = f"16 clients came one after another; it made no offer to {16 - len(own)} of them"
    assert f"{came}, of whom {dear} asked for more money than it had left." in said


def test_who_plays_one_offer_a_round_refuses_by_name() -> None:
    with pytest.raises(LockstepError, match=r"offers its clients one after another \(market.impressions\)"):
        curves_of(market_factory(in_turn())(0))
    with pytest.raises(ValueError, match=r"clients come one after another \(market.impressions\)"):
        flmarket.parallel_env(in_turn())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"market.impressions": "one"}, "market.impressions.*must be 'together' or 'sequential'"),
        ({"market.mechanism": "vcg"}, "market.mechanism.*'vcg' clears all clients of a round together"),
    ],
)
def test_wrong_values_are_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        in_turn(**changes)
