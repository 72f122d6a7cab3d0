"""Clients that come and go at any instant: drawn or by a trace, played, resumed and verified."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.explain import Explanation
from scenarios.build import Shelf, schedule_of
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import load
from scenarios.running.runner import execute
from support.runs import RESULTS, change, interrupt, planned, played, table

COMES = {
    "training.backend": "surrogate", "rounds": 10, "clients.speed": [0.3, 1.0, 3.0], "services.*.budget": 40,
    "timeline.mode": "continuous", "timeline.slot": 1.0, "timeline.aggregate.kind": "fedasync",
    "clients.presence": {"stay_seconds": 2.0, "away_seconds": 1.5}, "clients.offline_work": "lost",
}  # fmt: skip

SLOTS = {"timeline.mode": "slots", "timeline.aggregate.kind": None}


def coming(**changes: Any) -> Scenario:
    given = {key: value for key, value in {**COMES, **changes}.items() if value is not None}
    return load("quickstart", given)


def traced(folder: Path, **changes: Any) -> Scenario:
    """Clients come one after another, each 0.4 s after the last one, and stay for 2.5 s; the first comes again."""
    lines = [f"{client},{client * 0.4 + 0.1:.6f},{client * 0.4 + 2.6:.6f}" for client in range(20)] + ["0,5,5.5"]
    path = folder / "there.csv"
    path.write_text("\n".join(["client,from_second,to_second", *lines]) + "\n")
    return coming(**{"clients.presence": None, "clients.availability": str(path), "clients.count": 20, **changes})


def test_clients_take_work_as_they_come_and_lose_it_as_they_go(tmp_path: Path) -> None:
    """Held against the intervals alone, in a way that neither the market nor verify goes."""
    run = played(traced(tmp_path), tmp_path)
    verdict = verify(run)
    assert (verdict.problems, verdict.unchecked) == ([], [])
    jobs = [row for row in table(run.path, "offers") if row["start"]]
    as_they_come, lost = 0, 0
    for job in jobs:
        start, end, client = Decimal(job["start"]), Decimal(job["end"]), int(job["client"])
        begin, gone = Decimal(4 * client + 1) / 10, Decimal(4 * client + 26) / 10
        if client == 0 and start >= 5:
            begin, gone = Decimal(5), Decimal("5.5")
        assert begin <= start < end <= gone
        as_they_come += start == begin
        lost += job["outcome"] == "dropped"
        assert (job["outcome"] == "dropped") == (job["paid"] == "") == (end == gone)
    assert as_they_come >= 5
    assert lost >= 5


@pytest.mark.parametrize(
    "changes",
    [
        {"clients.offline_work": "continues", "clients.departure_rate": 0.2},
        {"clients.presence": {"stay_seconds": 0.5, "away_seconds": 4, "hours": [23.9999, 0.0005], "other_hours": 0.2}},
        {"clients.groups": [{"name": "few", "count": 5, "cores": 1}], "services.*.budget_cap": 90, "clients.cores": 3},
        {"timeline.deadline": 1.5, "timeline.aggregate.kind": "wait-for-all", "market.mechanism": "uniform-price"},
        {"interventions": [{"round": 3, "key": "clients.offline", "value": [1, 2, 3]}], "timeline.jitter": 0.5},
        {"clients.presence": {"stay_seconds": 0.000001, "away_seconds": 30}},  # nobody, nearly
    ],
)
def test_whatever_else_is_asked_for_a_run_is_verified(changes: dict[str, Any], tmp_path: Path) -> None:
    verdict = verify(played(coming(**changes), tmp_path))
    assert (verdict.problems, verdict.unchecked) == ([], [])


def test_a_run_that_was_killed_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    run = played(coming(), tmp_path / "whole")
    plan, shelf = planned(coming(), tmp_path / "killed"), Shelf()
    interrupt(plan, shelf, 4)
    execute(plan, shelf, workers=0)
    for name in (*RESULTS, "models.csv"):
        assert (plan.directory.path / name).read_bytes() == (run.path / name).read_bytes()


def test_verify_has_the_clients_there_that_the_market_has(tmp_path: Path) -> None:
    """One comes as a period ends, one goes as it begins, one is there for a microsecond."""
    path = tmp_path / "edges.csv"
    path.write_text("client,from_second,to_second\n0,0,2\n1,2,3\n2,1.999999,2\n3,2,2.000001\n4,0,9\n")
    scenario = coming(**{"clients.presence": None, "clients.availability": str(path), "clients.count": 5, "rounds": 4})
    logs, schedule = Logs.read(played(scenario, tmp_path)), schedule_of(scenario, 0)
    found = [logs.conditions(number).offline for number in range(1, 5)]
    assert found == [schedule.at(number).offline for number in range(1, 5)] == [{1, 2, 3}, {1, 3}, {0, 2}, {0, 1, 2, 3}]


def test_verify_finds_work_of_clients_that_are_not_there(tmp_path: Path) -> None:
    run = played(coming(), tmp_path)
    change(run.path, "offers", {"outcome": "served", "paid": "9.000000"}, lambda row: row["outcome"] == "dropped")
    assert any("by the work that goes on it should be" in problem for problem in verify(run).problems)


def test_who_went_offline_is_not_said_to_be_late(tmp_path: Path) -> None:
    """With a deadline, some are."""
    run = played(traced(tmp_path, **{"timeline.deadline": 2.0}), tmp_path)
    logs, causes = Logs.read_whole(run), set[bool]()
    for row in table(run.path, "offers"):
        if row["outcome"] != "dropped":
            continue
        client, end = int(row["client"]), Decimal(row["end"])
        gone = end in (Decimal(4 * client + 26) / 10, Decimal("5.5") if client == 0 else None)
        said = " ".join(Explanation(logs, int(row["round"]), row["service"]).sentences())
        why = f"it went offline at {end:.2f} s, and its work was lost" if gone else "its update did not arrive in time"
        assert f"Client {client}: awarded a core, but {why}; not paid." in said
        causes.add(gone)
    assert causes == {True, False}


def test_where_the_trace_is_gone_verify_says_what_it_cannot_check(tmp_path: Path) -> None:
    run = played(traced(tmp_path, **{"services.digits.total_budget": 100}), tmp_path)
    (tmp_path / "there.csv").unlink()
    verdict = verify(run)
    assert verdict.problems == []
    assert any("the trace of the run is not here" in it for it in verdict.unchecked)


def test_each_seed_has_other_comings(tmp_path: Path) -> None:
    offline = [[schedule_of(coming(), seed).at(n).offline for n in range(1, 11)] for seed in (0, 0, 1)]
    assert offline[0] == offline[1] != offline[2]
    assert 0 < np.mean([len(it) for it in offline[0]]) < coming().clients.count


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (SLOTS, "clients.presence.* at any instant; set timeline.mode"),
        ({"clients.presence": {"stay_seconds": 2}}, "presence.away_seconds: is missing"),
        ({"clients.presence": {"away_seconds": 2}}, "presence.stay_seconds: is missing"),
        ({"clients.presence": {"hours": [1, 2]}}, "presence.stay_seconds: is missing"),
        (
            {"clients.presence": {"stay_seconds": 0.000001, "away_seconds": 0.00001}},
            "would draw some .* stays, more than 10",
        ),
        ({"clients.presence": {"stay_seconds": 9, "away_seconds": 1e-6, "hours": [2, 3]}}, "would draw some .* stays"),
        ({"clients.presence": None}, "offline_work.*says nothing unless clients come and go at any instant"),
        ({"clients.presence": {"stay_seconds": 2, "away_seconds": 1, "hours": [22]}}, "hours"),
        ({"clients.presence": {"stay_seconds": 2, "away_seconds": 1, "hours": [7, 7]}}, r"two times .*, not \[7, 7\]"),
        (
            {"clients.presence": {"stay_seconds": 2, "away_seconds": 1, "hours": [24, 0]}},
            r"two times .*, not \[24, 0\]",
        ),
    ],
)
def test_wrong_values_are_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        coming(**changes)


def test_half_of_a_presence_is_one_mistake() -> None:
    with pytest.raises(ScenarioError) as error:
        coming(**{"clients.presence": {"stay_seconds": 2}})
    assert [(it.key, it.message) for it in error.value.problems] == [("clients.presence.away_seconds", "is missing")]


def test_a_trace_in_seconds_in_which_nobody_is_there_within_the_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    for first, refused in (("9.999999", False), ("10", True)):
        path.write_text(f"client,from_second,to_second\n0,{first},12\n1,20,30\n")
        changes = {"clients.presence": None, "clients.availability": str(path), "clients.count": 2}
        if refused:
            with pytest.raises(
                ScenarioError, match=r"availability.*has nobody there in the 10\.0 seconds that the run"
            ):
                coming(**changes)
        else:
            coming(**changes)


def test_a_trace_in_seconds_is_for_continuous_markets_and_not_for_drawn_comings(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"availability.*is in seconds, and rounds may take any time"):
        traced(tmp_path, **SLOTS, **{"clients.offline_work": None})
    with pytest.raises(ScenarioError, match=r"presence.*cannot be given together with clients\.availability"):
        traced(tmp_path, **{"clients.presence": COMES["clients.presence"]})
    rounds = tmp_path / "rounds.csv"
    rounds.write_text("client,from,to\n" + "".join(f"{client},1,9\n" for client in range(20)))
    by_rounds = {"clients.availability": str(rounds), "rounds": 9}
    with pytest.raises(ScenarioError, match=r"offline_work.*says nothing unless"):
        traced(tmp_path, **by_rounds)
    traced(tmp_path, **by_rounds, **{"clients.offline_work": None})
