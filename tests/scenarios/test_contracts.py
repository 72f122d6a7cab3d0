"""Scenarios in which services hire for several rounds: played, resumed, verified, forged, explained and refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flmarket
from des.log_records import Outcome
from des.mechanism import MECHANISMS
from des.observation import Offer
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.bounds import run_bounds
from flmarket.analysis.what_if.explain import Explanation
from flmarket.core.errors import InputError
from learning.lockstep.market_kinds import LockstepError, curves_of
from scenarios.build import Shelf, market_factory
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import load, parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LoggedRound
from scenarios.running.runner import execute
from scenarios.world import World
from support.runs import RESULTS, change, edit, interrupt, planned, played, rounds_text, table
from tui.state.bid_verdicts import RoundBook

HIRES = {
    "training.backend": "surrogate", "rounds": 8, "market.contract_rounds": 3, "market.cancel_fee": 0.2,
    "clients.departure_rate": 0.1, "services.*.policy": "greedy", "services.mnist-rich.target_accuracy": 0.65,
    "services.emnist-poor.total_budget": 40,
}  # fmt: skip


def hiring(**changes: Any) -> Scenario:
    return load("scarce", {**HIRES, **changes})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return played(hiring(), tmp_path_factory.mktemp("hired"))


@pytest.mark.parametrize("lines", [50_000, 20])
def test_runs_with_contracts_are_verified(run: RunDirectory, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether logs are read whole or in blocks of a round."""
    monkeypatch.setattr("flmarket.analysis.verification.verify.BLOCK", lines)
    verdict = verify(run)
    assert (verdict.problems, verdict.unchecked) == ([], [])
    events = table(run.path, "events")
    assert any(row["event"] == "cancel" and float(row["amount"]) > 0 for row in events)
    offers = table(run.path, "offers")
    assert any(float(row["payment"]) < float(row["bid"]) for row in offers)  # a later bid does not count


@pytest.mark.parametrize(
    ("mechanism", "changes"),
    [
        ("uniform-price", {}),
        ("iterated", {"clients.cores": 2}),
        ("proportional-share", {"clients.behaviour.kind": "adaptive"}),
        ("posted-price", {"market.options.price_per_sample": 0.04}),
    ],
)
def test_every_mechanism_hires_and_is_verified(mechanism: str, changes: dict[str, Any], tmp_path: Path) -> None:
    run = played(hiring(**{"market.mechanism": mechanism, **changes}), tmp_path)
    assert (logs := Logs.read_whole(run)).hired.rows.any()
    assert verify(run).problems == []
    assert logs.hired.missing == []


def test_a_run_that_was_killed_resumes_to_the_same_bytes(run: RunDirectory, tmp_path: Path) -> None:
    plan, shelf = planned(hiring(), tmp_path), Shelf()
    interrupt(plan, shelf, 4)
    execute(plan, shelf, workers=0)
    for name in RESULTS:
        assert (plan.directory.path / name).read_bytes() == (run.path / name).read_bytes()


def test_a_fork_goes_on_with_the_contracts(run: RunDirectory, tmp_path: Path) -> None:
    """With a budget of 0 from round 3 on, a service pays what it owes for clients of round 1, and hires nobody."""
    budget = {"services.mnist-middle.budget": 0}
    [fork] = flmarket.fork(run.path, 3, budget, out=tmp_path, progress=False)
    assert verify(RunDirectory(fork.path)).problems == []
    rows = [row for row in table(fork.path, "rounds") if row["service"] == "mnist-middle"]
    assert rows[:2] == [row for row in table(run.path, "rounds") if row["service"] == "mnist-middle"][:2]
    assert float(rows[2]["budget"]) > 0
    assert [float(row["budget"]) for row in rows[4:]] == [0] * 4


def test_an_environment_observes_what_contracts_leave() -> None:
    env = flmarket.parallel_env(hiring(**{"clients.departure_rate": 0.0, "market.contract_rounds": 2}))
    env.reset(seed=0)
    bid = env.observed["mnist-middle"].own_bids[:1]
    offers = dict.fromkeys(env.agents, Offer.none())
    (shown, *_), _ = env.step_offers({**offers, "mnist-middle": Offer(np.array([0]), bid)})
    assert env.observed["mnist-middle"].budget == pytest.approx(15 - bid[0])
    assert all(shown[name]["available"][0] == 0 for name in env.agents)
    (shown, *_), report = env.step_offers(offers)
    assert [(it.service, it.client, it.outcome) for it in report.offers] == [("mnist-middle", 0, Outcome.SERVED)]
    assert env.observed["mnist-middle"].budget == 15
    assert all(shown[name]["available"][0] == 1 for name in env.agents)


def second_row(path: Path) -> dict[str, str]:
    """Return the first row of a client that serves the same service in two rounds that follow: the later one."""
    rows = table(path, "offers")
    for row in rows:
        for later in rows:
            same = (row["service"], row["client"]) == (later["service"], later["client"])
            if same and int(later["round"]) == int(row["round"]) + 1 and row["outcome"] == later["outcome"] == "served":
                return later
    raise AssertionError("no contract")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"payment": "9.876543", "paid": "9.876543"}, "payment is 9.876543, but by its contract it should be"),
        ({"core": "1"}, "core is 1, but by its contract it should be 0"),
        ({"client": "19"}, "is hired by a contract, but offers.csv has no row of it"),
    ],
)
def test_a_forged_contract_is_found(values: dict[str, str], problem: str, tmp_path: Path) -> None:
    run = played(hiring(), tmp_path)
    forged = second_row(run.path)
    change(run.path, "offers", values, lambda row: row == forged)
    assert any(problem in text for text in verify(run).problems)


def test_an_offer_to_a_client_under_a_contract_is_found(tmp_path: Path) -> None:
    run = played(hiring(), tmp_path)
    bound, rows = second_row(run.path), table(run.path, "offers")
    rival = next(row for row in rows if row["round"] == bound["round"] and row["service"] != bound["service"])
    change(run.path, "offers", {"client": bound["client"]}, lambda row: row == rival)
    assert any("the client is under a contract, but gets an offer" in text for text in verify(run).problems)


def test_a_forged_fee_is_found(tmp_path: Path) -> None:
    run = played(hiring(), tmp_path)
    change(run.path, "events", {"amount": "0.000000"}, lambda row: row["event"] == "cancel")
    assert any("cancel" in text and "but should be" in text for text in verify(run).problems)
    run = played(hiring(), tmp_path / "other")

    def leave_out(rows: list[dict[str, str]]) -> None:
        left = next(row for row in rows if row["status"] == "reached")
        left["spent"] = f"{float(left['spent']) - 1:.6f}"

    edit(run.path, "rounds", leave_out)
    assert any("its offers come to" in text for text in verify(run).problems)


def test_what_is_known_of_single_rounds_alone_is_not_claimed(run: RunDirectory) -> None:
    logs = Logs.read_whole(run)
    with pytest.raises(InputError, match=r"here services hire for several \(contract_rounds\)"):
        run_bounds(logs)
    said = " ".join(Explanation(logs, 2, "mnist-middle").sentences())
    assert "this run is cleared by pay-as-offered with contracts over 3 rounds" in said


def test_lockstep_refuses_contracts_by_name() -> None:
    with pytest.raises(LockstepError, match=r"hires for several rounds \(market.contract_rounds\)"):
        curves_of(market_factory(hiring())(0))


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("contract_rounds", 0, "must be greater than or equal to 1"),
        ("contract_rounds", 1.5, "must be a valid integer"),
        ("cancel_fee", 1.1, "must be less than or equal to 1"),
        ("cancel_fee", 0.1234567, "has more than six decimals"),
    ],
)
def test_wrong_values_are_named(key: str, value: Any, problem: str) -> None:
    with pytest.raises(ScenarioError, match=f"market.{key}.*{problem}"):
        hiring(**{f"market.{key}": value})


def test_services_do_not_hire_clients_that_answer_each_award() -> None:
    with pytest.raises(ScenarioError, match=r"market.contract_rounds.*must be 1 where clients respond to each award"):
        hiring(**{"clients.response.kind": "quadratic"})


def test_a_mechanism_with_one_budget_for_all_services_does_not_hire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MECHANISMS.load("proportional-share"), "platform_budget", True)
    with pytest.raises(ScenarioError, match=r"market.contract_rounds.*'proportional-share' lets all services pay from"):
        load("scarce", {"market.mechanism": "proportional-share", "market.contract_rounds": 2})


def test_screens_do_not_say_that_a_client_under_a_contract_would_have_fitted(run: RunDirectory) -> None:
    texts, world = [*rounds_text(run.path)], World(parse(run.scenario_text()), 0)
    book = RoundBook(LoggedRound.read(texts[1]), world)
    hired = next(offer for offer in book.logged.offers if offer.payment < offer.bid)
    mine = next(m for m, row in enumerate(book.logged.services) if row.service == hired.service)
    others = [m for m in range(len(book.logged.services)) if m != mine]
    assert "below its bid" in book.line(mine, hired.client).reason
    assert {book.line(m, hired.client).reason for m in others} == {
        "not chosen, or not available when the service decided"
    }
