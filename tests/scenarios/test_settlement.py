"""A plug-in that pays after delivery: played, verified, forged, and resumed to the same bytes."""

import re
from pathlib import Path

import pytest

from des.mechanism import MECHANISMS
from flmarket.analysis.verification.offer_rules import keeps_bids
from flmarket.analysis.verification.verify import verify
from flmarket.benchmark.certify.certificate import AttackPlan, certify
from flmarket.testing import check_mechanism
from scenarios.loader import load
from scenarios.plugin_files import load_plugin
from support.runs import change, played, table

PAGE = Path(__file__).parents[2] / "docs/extending/mechanism.md"
CHANGES = ["training.backend=surrogate", "rounds=4", "market.mechanism=on-delivery", "clients.departure_rate=0.3"]


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    [text] = re.findall(r"```python\n# on_delivery.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (tmp_path / "on_delivery.py").write_text(text)
    load_plugin(tmp_path / "on_delivery.py")
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


def test_pay_below_the_bid_is_right_where_the_mechanism_says_so_whether_it_is_here_or_not(tmp_path: Path) -> None:
    (tmp_path / "cheap.py").write_text(CHEAP)
    load_plugin(tmp_path / "cheap.py")
    scenario = load("quickstart", ["training.backend=surrogate", "rounds=2", "market.mechanism=cheap"])
    run = played(scenario, tmp_path / "runs")
    assert any(float(row["paid"]) < float(row["bid"]) for row in table(run.path, "offers") if row["paid"])
    assert verify(run).problems == []
    assert not keeps_bids("a mechanism that is not here")


def test_a_certificate_promises_no_bid_where_the_mechanism_does_not(tmp_path: Path) -> None:
    (tmp_path / "cheap.py").write_text(CHEAP)
    load_plugin(tmp_path / "cheap.py")
    check_mechanism(MECHANISMS.load("cheap"))
    rows = certify(AttackPlan("cheap", markets=2, tries=3)).rows()
    assert ("individual rationality of clients", "not promised") in [row[:2] for row in rows]
