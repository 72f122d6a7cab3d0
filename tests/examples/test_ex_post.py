"""examples/ex_post.py: what its mechanisms pay by hand, and free riders who are found by training alone."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import flmarket
from des.mechanism import MECHANISMS, Book, Deliveries, Mechanism, RoundView
from flmarket.testing import check_mechanism
from scenarios.plugin_files import load_plugin

PLUGIN = Path(__file__).parents[2] / "examples" / "ex_post.py"
NAMES = ["pay-for-gain", "audit"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, type[Mechanism]]]:
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    load_plugin(PLUGIN)
    return {name: MECHANISMS.load(name) for name in NAMES}


def book(number: int) -> Book:
    """Three offers of one service and one of another."""
    services, clients = np.array([0, 0, 0, 1]), np.array([4, 5, 6, 5])
    amounts = np.array([30, 50, 40, 50]), np.array([20, 20, 20, 20]), np.array([20, 20, 20, 20])
    order = np.zeros((7, 2))
    view = RoundView(number, 9, *[np.ones((2, 7))] * 3, *[np.ones(2)] * 3)
    return Book(services, clients, *amounts, np.array([200, 200]), 2, lambda client: order[client], lambda: view)


def deliveries(offers: list[int], before: float, after: float) -> Deliveries:
    all_of_it = np.ones(len(offers))
    return Deliveries(0, np.array(offers), all_of_it > 0, all_of_it, all_of_it, before, after)


def test_pay_for_gain_pays_what_was_offered_or_nothing(made: dict[str, type[Mechanism]]) -> None:
    rule = made["pay-for-gain"]()
    clearing = rule.clear(book(2))
    assert (clearing.core >= 0).all()
    assert rule.settle(book(2), clearing, deliveries([0, 1, 2], 0.5, 0.6)).tolist() == [30, 50, 40]
    assert rule.settle(book(2), clearing, deliveries([0, 1, 2], 0.5, 0.5)).tolist() == [0, 0, 0]


def test_an_audit_takes_the_dearest_client_alone_and_no_client_twice(made: dict[str, type[Mechanism]]) -> None:
    rule = made["audit"]()
    assert (rule.clear(book(1)).core >= 0).all()  # nobody knows the accuracy before it
    clearing = rule.clear(book(2))
    # Client 5 is audited by one of them; the other audits somebody else, or has nobody left to audit.
    assert (clearing.core >= 0).tolist() in ([False, True, False, True], [False, False, True, True])
    alone = deliveries([1], 0.5, 0.5)
    assert rule.settle(book(2), clearing, alone).tolist() == [0]
    assert rule.settle(book(2), clearing, deliveries([1], 0.5, 0.4)).tolist() == [50]
    assert rule.settle(book(2), clearing, deliveries([0, 1], 0.5, 0.5)).tolist() == [30, 50]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_they_keep_the_contracts(name: str, made: dict[str, type[Mechanism]]) -> None:
    check_mechanism(made[name])


@pytest.mark.slow
def test_free_riders_are_found_and_serve_no_more(made: dict[str, type[Mechanism]], tmp_path: Path) -> None:
    riders = [{"name": "riders", "count": 4, "free_ride": "old"}]
    changes = {"clients.groups": riders, "market.mechanism": "audit", "rounds": 9, "training.model": "logistic"}
    results = flmarket.run(flmarket.load("quickstart", changes), "greedy", out=tmp_path, progress=False)
    offers = results.offers
    served = offers[(offers.outcome == "served") & (offers.group == "riders")]
    assert served.paid[served["round"] > 1].sum() == 0
    assert served["round"].max() < 9
    honest = offers[(offers.outcome == "served") & (offers.group != "riders") & (offers["round"] == 9)]
    assert len(honest) > 5
