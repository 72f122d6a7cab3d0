"""Runs under each mechanism: `flmarket verify` clears their rounds again, and they resume to the same bytes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from des.mechanism import MECHANISMS, Book, Clearing
from des.mechanisms.posted_price import PostedPrice
from flmarket.analysis.verification.verify import verify
from scenarios.build import Shelf
from scenarios.file.schema import Scenario
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectory
from scenarios.running import checkpoint
from scenarios.running.batch_run import AfterRound
from scenarios.running.runner import execute
from support.runs import RESULTS, change, interrupt, planned, played, table
from support.scenarios import three_services
from support.tiers import slow

MARKETS = {
    "pay-as-offered": "",
    "uniform-price": "",
    "posted-price": ", options = { price_per_sample = 0.06, step = 0.3 }",
    "proportional-share": "",
    "iterated": ", options = { steps = 4 }",
    "vcg": "",
    "fair-queue": "",
    "scheduler": ', options = { order = "srsf" }',
    "score-auction": "",
}

SCENARIO = """
name = "laboratory"
rounds = 6
clients = { count = 6, cores = 1, data_size = [40, 80], emd = [0.2, 0.8], cost = { per_sample = 0.05, per_emd = 1.0 } }
training = { backend = "surrogate" }
market = { mechanism = "%s"%s }
""" + three_services("worth", "worth", "lcfa")


def scenario(mechanism: str) -> Scenario:
    return parse(SCENARIO % (mechanism, MARKETS[mechanism]))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of a run under a mechanism."""
    found: dict[str, Path] = {}

    def run(mechanism: str) -> Path:
        if mechanism not in found:
            found[mechanism] = played(scenario(mechanism), tmp_path_factory.mktemp(mechanism)).path
        return found[mechanism]

    return run


def test_all_built_in_mechanisms_are_tried() -> None:
    assert set(MARKETS) == set(MECHANISMS.builtin)


@pytest.mark.parametrize("lines", [60, *slow(50_000)])
@pytest.mark.parametrize("mechanism", MECHANISMS.builtin)
def test_a_run_under_any_mechanism_is_good(
    mechanism: str, lines: int, runs: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether logs are read whole or in blocks of a round, at the end of which mechanisms keep their memory."""
    monkeypatch.setattr("flmarket.analysis.verification.verify.BLOCK", lines)
    result = verify(RunDirectory(runs(mechanism)))
    assert result.problems == []
    offers = (runs(mechanism) / "offers.csv").read_text()
    assert ",served," in offers
    assert ",outbid," in offers


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS.builtin if name != "pay-as-offered"])
def test_another_price_than_the_mechanisms_is_named(
    mechanism: str, runs: Callable[[str], Path], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(runs(mechanism), tmp_path / "run"))
    row = next(row for row in table(run, "offers") if row["paid"] and float(row["paid"]) > float(row["bid"]))
    change(run, "offers", {"paid": f"{float(row['paid']) - 0.000001:.6f}"}, lambda it: it == row)
    assert any(", but the mechanism gives it " in problem for problem in verify(RunDirectory(run)).problems)


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS.builtin if name != "pay-as-offered"])
def test_another_winner_than_the_mechanisms_is_named(
    mechanism: str, runs: Callable[[str], Path], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(runs(mechanism), tmp_path / "run"))
    change(run, "offers", {"outcome": "served", "core": "0"}, lambda row: row["outcome"] == "outbid")
    assert any(
        "is served, but the mechanism says otherwise" in problem for problem in verify(RunDirectory(run)).problems
    )


def test_offering_again_without_having_been_refused_is_named(runs: Callable[[str], Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs("iterated"), tmp_path / "run"))
    decisions = [row for row in table(run, "events") if row["event"] == "decision" and row["round"] == "1"]
    again = decisions[3]  # somebody offered again
    other = next(name for name in ("alpha", "beta", "gamma") if name != again["service"])
    change(run, "events", {"service": other}, lambda row: row == again)
    assert any("may offer, but others do" in problem for problem in verify(RunDirectory(run)).problems)


def test_a_mechanism_that_fails_after_clearing_is_named(
    runs: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of a plug-in may that is another version than the one that played the run."""

    def close(mechanism: PostedPrice, book: Book, clearing: Clearing) -> None:
        raise ZeroDivisionError("no offers")

    run = runs("posted-price")
    monkeypatch.setattr(PostedPrice, "close", close)
    [problem] = verify(RunDirectory(run)).problems
    assert "round 1: cannot be cleared again: mechanism PostedPrice: ZeroDivisionError: no offers (" in problem


@pytest.mark.parametrize("mechanism", ["posted-price", "iterated", "fair-queue"])
def test_an_interrupted_run_resumes_to_the_same_bytes(
    mechanism: str, runs: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The price that the platform posts, and the services' queues, are part of what a run remembers."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    run, rounds = planned(scenario(mechanism), tmp_path), []
    interrupt(run, Shelf(), 3)
    execute(run, Shelf(), AfterRound(lambda report: rounds.append(report.round)))
    assert rounds == [4, 5, 6]
    for name in RESULTS:
        assert (run.directory.path / name).read_bytes() == (runs(mechanism) / name).read_bytes()
