"""A world that changes: lasting data, late services, budgets for the whole run, clients that come and go."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flmarket
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.report_formats import markdown
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.explain import Explanation
from flmarket.core.errors import InputError
from scenarios.build import Shelf, build
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LoggedRound
from scenarios.world import World
from support.runs import change, planned, played, rounds_text, table
from support.scenarios import problems
from support.worlds import CHANGING, WORLDS
from tui.state.bid_verdicts import RoundBook


@pytest.fixture
def good(run_of: Callable[[str], RunDirectory]) -> Path:
    return run_of("changing").path


def test_observations_show_what_is_left_of_the_whole_run() -> None:
    market = build(parse(CHANGING), 0, Shelf()).market
    seen: list[Any] = []
    while not market.finished:
        observed = market.open_round()
        for observation in observed.values():
            assert observation.total_left is None or observation.budget == min(20, observation.total_left)
        seen.append({name: it.total_left for name, it in observed.items()})
        offers = {
            name: flmarket.fill_budget(range(10), it.own_bids, it.budget, available=it.available)
            for name, it in observed.items()
        }
        market.close_round(offers)
    assert seen[:3] == [{}, {}, {"early": 60.0}]
    assert seen[5]["late"] is None
    lefts = [it["early"] for it in seen[2:]]
    assert lefts == sorted(lefts, reverse=True)
    assert lefts[-1] < 60


def test_rounds_to_target_and_means_count_from_the_arrival(tmp_path: Path) -> None:
    run = played(WORLDS["changing"].load("services.late.target_accuracy=0.3", "rounds=30"), tmp_path)
    [result] = flmarket.read(tmp_path).runs
    rows = [row for row in table(run.path, "rounds") if row["service"] == "late"]
    reached = next(int(row["round"]) for row in rows if row["status"] == "reached")
    assert result.to_target.rounds.tolist() == [30 - 2, reached - 5]
    assert result.to_target.reached.tolist() == [False, True]
    assert "A service that arrives later than in the first round counts from its arrival" in markdown(
        make_report(flmarket.read(tmp_path).runs)
    )
    shown = flmarket.read(tmp_path).summary().xs("late", level="service")["AUC"].item()
    assert shown == pytest.approx(100 * result["accuracy"][5:, 1].mean())


def test_what_is_shown_of_a_service_that_has_not_arrived(good: Path) -> None:
    logs = Logs.read(RunDirectory(good))
    with pytest.raises(InputError, match="service 'late' arrives after round 5"):
        Explanation(logs, 5, "late")
    logged = LoggedRound.read(list(rounds_text(good))[4])
    book = RoundBook(logged, World(parse(CHANGING), 0))
    assert {book.line(1, client).reason for client in range(10)} == {"the service has not arrived"}


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("services.late.arrival=13", "must be at most the 12 rounds, not 13"),
        ("services.late.arrival=0", "must be greater than or equal to 1, not 0"),
        ("services.early.total_budget=-1", "must be greater than or equal to 0, not -1"),
        ("services.early.total_budget=0.1234567", "has more than six decimals: 0.1234567"),
        ("clients.lasting.persistence=1.5", "must be less than or equal to 1, not 1.5"),
        ("clients.lasting.drift=-0.1", "must be greater than or equal to 0, not -0.1"),
    ],
)
def test_impossible_worlds_are_refused(setting: str, problem: str) -> None:
    assert problems(CHANGING, setting) == [f"{setting}: {problem}"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Even clients are there in the first half of the run, odd ones in the second; client 0 always."""
    lines = ["0,1,12", *(f"{c},{1 + 6 * (c % 2)},{6 + 6 * (c % 2)}" for c in range(1, 10))]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["client,from,to", *lines, ""]))
    return path


def test_nobody_offers_to_clients_that_are_not_there(trace: Path, tmp_path: Path) -> None:
    run = played(WORLDS["changing"].load(f"clients.availability={trace}"), tmp_path / "out")
    wanted = {(int(row["round"]) > 6, int(row["client"])) for row in table(run.path, "offers")}
    assert wanted == {(False, c) for c in (0, 2, 4, 6, 8)} | {(True, c) for c in (0, 1, 3, 5, 7, 9)}
    assert verify(run).problems == []
    change(run.path, "offers", {"client": "2"}, lambda row: (row["round"], row["client"]) == ("8", "1"))
    told = "client 2: the client is offline in this round, but gets an offer"
    assert any(told in found for found in verify(run).problems)


def test_interventions_and_a_trace_add_up(trace: Path) -> None:
    text = CHANGING + '\n[[interventions]]\nround = 4\nkey = "clients.offline"\nvalue = [0, 2]\n'
    market = build(parse(text, overrides=[f"clients.availability={trace}"]), 0, Shelf()).market
    offline = []
    while not market.finished:
        observed = market.open_round()
        offline += [it.offline for it in list(observed.values())[:1]]
        market.close_round({name: flmarket.Offer.none() for name in observed})
    odd = {1, 3, 5, 7, 9}
    assert offline == [odd] + 3 * [odd | {0, 2}] + 6 * [{0, 2, 4, 6, 8}]


def test_a_changed_trace_is_found(trace: Path, tmp_path: Path) -> None:
    scenario = WORLDS["changing"].load(f"clients.availability={trace}")
    run = played(scenario, tmp_path / "out")
    trace.write_text(trace.read_text().replace("0,1,12", "0,1,11"))
    assert planned(scenario, tmp_path / "out").directory != run
    assert verify(run).problems == []  # the logs are what they were
    with pytest.raises(InputError, match=r"trace\.csv is not the trace with which the run was played"):
        rerun(run, Shelf())
    trace.unlink()
    assert verify(run).problems == []


def test_a_trace_s_problem_is_one_of_the_scenario_s(trace: Path) -> None:
    trace.write_text("client,from,to\n0,3,2\n")
    text = CHANGING.replace("cores = 1", f'cores = 1\navailability = "{trace}"')
    assert problems(text) == [f"f:9: clients.availability: {trace}:2: the interval from 3 to 2 is empty"]
