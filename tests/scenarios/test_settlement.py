"""A plug-in that pays after delivery: played, verified, forged, and resumed to the same bytes."""

import re
from pathlib import Path

import numpy as np
import pytest

from des.mechanism import MECHANISMS
from des.money import text, to_micro
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.explain import Explanation
from flmarket.benchmark.certify.certificate import AttackPlan, certify
from flmarket.core.errors import InputError
from flmarket.testing import check_mechanism
from learning.play_round import play
from scenarios.build import Shelf, build
from scenarios.loader import load
from scenarios.plugin_files import load_plugin
from scenarios.running import checkpoint
from scenarios.running.runner import execute
from support.runs import RESULTS, change, interrupt, planned, played, table

PAGE = Path(__file__).parents[2] / "docs/extending/mechanism.md"
CHANGES = ["training.backend=surrogate", "rounds=4", "market.mechanism=on-delivery", "clients.departure_rate=0.3"]


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Return a folder with the page's mechanisms, loaded."""
    for name in ("on_delivery", "on_record", "reputation", "one_budget", "best_gain"):
        [code] = re.findall(rf"```python\n# {name}.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
        (tmp_path / f"{name}.py").write_text(code)
        load_plugin(tmp_path / f"{name}.py")
    return tmp_path


def test_pay_after_delivery_is_verified_and_a_false_payment_is_found(plugin: Path) -> None:
    run = played(load("quickstart", [*CHANGES, "services.*.policy=worth"]), plugin / "runs")
    paid = [row for row in table(run.path, "offers") if row["outcome"] == "served"]
    assert any(row["paid"] == row["bid"] != row["payment"] for row in paid)
    assert any(row["paid"] == row["payment"] != row["bid"] for row in paid)
    assert verify(run).problems == []
    generous = next(row for row in paid if row["paid"] == row["bid"] != row["payment"])
    change(run.path, "offers", {"paid": generous["payment"]}, lambda row: row == generous)
    assert any("the mechanism gives it" in problem for problem in verify(run).problems)


SOME_LEAVE = [
    *("training.backend=surrogate", "rounds=40", "clients.count=8", "services.*.policy=worth"),
    "clients.groups=[{name='leavers', count=4, departure_rate=0.5}]",
]


@pytest.mark.parametrize("mechanism", ["on-record", "reputation"])
def test_what_is_paid_by_earlier_deliveries_is_verified_and_resumed_to_the_same_bytes_and_a_false_payment_is_found(
    plugin: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    scenario = load("quickstart", [*SOME_LEAVE, "rounds=8", f"market.mechanism={mechanism}"])
    whole, killed = played(scenario, plugin / "whole"), planned(scenario, plugin / "killed")
    interrupt(killed, Shelf(), after=5)
    execute(killed, Shelf(), workers=0)
    for name in RESULTS:
        assert (killed.directory.path / name).read_bytes() == (whole.path / name).read_bytes()
    assert verify(whole).problems == []
    later = [row for row in table(whole.path, "offers") if int(row["round"]) > 3 and row["outcome"] == "served"]
    between = next(row for row in later if float(row["bid"]) < float(row["paid"]) < float(row["payment"]))
    change(whole.path, "offers", {"paid": between["payment"]}, lambda row: row == between)
    assert any("the mechanism gives it" in problem for problem in verify(whole).problems)


def test_deliveries_are_counted_from_the_round_in_which_the_mechanism_takes_over(plugin: Path) -> None:
    begins = "interventions=[{round=4, key='market.mechanism', value='on-record'}]"
    run = played(load("quickstart", [*SOME_LEAVE, "rounds=8", begins]), plugin / "runs")
    served = [row for row in table(run.path, "offers") if row["outcome"] == "served"]
    assert all(row["paid"] == row["payment"] for row in served if row["round"] in "1234")
    assert any(row["paid"] != row["payment"] for row in served if row["round"] > "4")
    assert verify(run).problems == []


def test_clients_that_leave_end_with_a_lower_reputation_than_those_that_deliver(plugin: Path) -> None:
    """Each of the first four leaves half of the rounds in which it is awarded something."""
    for seed in range(3):
        setup = build(load("paper", [*SOME_LEAVE, "market.mechanism=reputation"]), seed, Shelf())
        play(setup.market, setup.policies)
        ends = setup.market.mechanism.of(np.arange(8))
        assert ends[:4].max() < ends[4:].min() - 0.1
        assert ends[:4].mean() < ends[4:].mean() - 0.3


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["on-record", "reputation", "one-budget", "best-gain"])
def test_the_mechanisms_of_the_page_keep_their_contracts(plugin: Path, mechanism: str) -> None:
    check_mechanism(MECHANISMS.load(mechanism))


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("of_all", ["best-gain", "on-delivery"])
def test_payments_for_all_services_come_last_and_verify_finds_one_that_comes_at_another_time(
    plugin: Path, monkeypatch: pytest.MonkeyPatch, of_all: str, here: bool
) -> None:
    slow = "clients.groups=[{name='slow', count=4, speed=[0.2], departure_rate=0.3}]"
    changes = [
        *CHANGES,
        f"market.mechanism={of_all}",
        "services.*.policy=worth",
        slow,
        "services.digits.target_accuracy=0.7",
    ]
    run = played(load("quickstart", changes), plugin / "runs")
    if not here:
        monkeypatch.setattr(MECHANISMS, "_registered", {})
    assert verify(run).problems == []
    [paid, *_] = [row for row in table(run.path, "events") if row["event"] == "pay"]
    last = max(float(row["sim_time"]) for row in table(run.path, "events") if row["round"] == "1")
    assert (float(paid["sim_time"]) == last) == (of_all == "best-gain")
    change(run.path, "events", {"sim_time": f"{last - 0.5:.6f}"}, lambda row: row == paid)
    assert any("events.csv" in problem and "but should be" in problem for problem in verify(run).problems)


POOLED = ["training.backend=surrogate", "rounds=6", "market.mechanism=one-budget", "services.*.policy=worth"]


@pytest.mark.parametrize("here", [True, False])
def test_one_budget_of_all_services_is_verified_and_a_sum_over_it_is_found_whether_the_mechanism_is_here_or_not(
    plugin: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    run = played(load("scarce", [*POOLED, "services.mnist-poor.target_accuracy=0.2"]), plugin / "runs")
    rounds = table(run.path, "rounds")
    assert any(float(row["spent"]) > float(row["budget"]) for row in rounds)
    assert any(row["status"] == "left" for row in rounds)  # whose budget the others do not have
    if not here:
        monkeypatch.setattr(MECHANISMS, "_registered", {})
    assert verify(run).problems == []
    spent = {row["service"]: float(row["spent"]) for row in rounds if row["round"] == "1"}
    name, others = min(spent, key=spent.__getitem__), sum(spent.values()) - min(spent.values())
    funds = sum(float(row["budget"]) for row in rounds if row["round"] == "1")
    row = next(
        it for it in table(run.path, "offers") if (it["round"], it["service"], it["outcome"]) == ("1", name, "served")
    )
    change(run.path, "offers", {"paid": f"{funds - others + 1:.6f}", "payment": "1000"}, lambda it: it == row)
    problems = verify(run).problems
    assert any("what all services spend is over all their budgets (eq. 4)" in problem for problem in problems)


def test_a_budget_for_the_whole_run_cannot_be_part_of_one_for_all_services(plugin: Path) -> None:
    with pytest.raises(InputError) as error:
        load("quickstart", [*POOLED, "services.digits.total_budget=50"])
    assert "market.mechanism=one-budget: 'one-budget' lets all services pay from one budget, but digits has" in str(
        error.value
    )
    later = "interventions=[{round=4, key='market.mechanism', value='one-budget'}]"
    with pytest.raises(InputError, match=r"interventions.*'one-budget' lets all services pay from one budget"):
        load("quickstart", [later, "services.digits.total_budget=50"])


def test_explain_says_that_prices_were_set_after_delivery_and_what_had_been_offered(plugin: Path) -> None:
    said = "The mechanism set prices after delivery; the payments offered to those who served were "
    for mechanism, after in (("on-delivery", True), ("on-record", False)):
        run = played(load("quickstart", [*CHANGES, f"market.mechanism={mechanism}"]), plugin / "runs")
        logs = Logs.read(run)
        served = [row for row in table(run.path, "offers") if (row["round"], row["outcome"]) == ("2", "served")]
        for service in {row["service"] for row in served}:
            offered = sum(to_micro(float(row["payment"])) for row in served if row["service"] == service)
            sentences = list(Explanation(logs, 2, service).sentences())
            assert (f"{said}{text(offered)}." in sentences) == after
            assert any(sentence.startswith(said) for sentence in sentences) == after


CHEAP = '''
from flmarket import Clearing, Mechanism, allocate, mechanism


@mechanism("cheap")
class Cheap(Mechanism):
    """Pays half of the bid, whatever was promised; reads the round, too."""

    below_bid = True

    def clear(self, book):
        assert book.round.number >= 1
        return Clearing(allocate(book.services, book.clients, book.payments, book.cores, book.tie_order), book.payments)

    def settle(self, book, clearing, deliveries):
        first = deliveries.offers[0]  # there is one, as nobody settles nothing
        return book.bids[deliveries.offers] // 2
'''


def test_pay_below_the_bid_is_right_where_the_mechanism_says_so_whether_it_is_here_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cheap.py").write_text(CHEAP)
    load_plugin(tmp_path / "cheap.py")
    scenario = load("quickstart", ["training.backend=surrogate", "rounds=2", "market.mechanism=cheap"])
    run = played(scenario, tmp_path / "runs")
    assert any(float(row["paid"]) < float(row["bid"]) for row in table(run.path, "offers") if row["paid"])
    assert verify(run).problems == []
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    assert verify(run).problems == []


def test_a_certificate_promises_no_bid_where_the_mechanism_does_not(tmp_path: Path) -> None:
    (tmp_path / "cheap.py").write_text(CHEAP)
    load_plugin(tmp_path / "cheap.py")
    check_mechanism(MECHANISMS.load("cheap"))
    rows = certify(AttackPlan("cheap", markets=2, tries=3)).rows()
    assert ("individual rationality of clients", "not promised") in [row[:2] for row in rows]
