"""Services that arrive later, and budgets for the whole run, in the market itself."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from des.log_records import Kind
from des.market import Market, MarketError
from des.observation import Offer, Status
from des.service import ServiceSpec

MakeMarket = Callable[..., Market]


@pytest.fixture
def late(plain_service: ServiceSpec) -> ServiceSpec:
    return replace(plain_service, name="late", arrival=3)


def nobody(market: Market) -> None:
    """Play a round in which everybody who is there wants nobody."""
    market.close_round({name: Offer.none() for name in market.open_round()})


def test_a_service_is_not_there_before_it_arrives(make_market: MakeMarket, late: ServiceSpec) -> None:
    market = make_market(["alpha", late])
    for number in (1, 2):
        observed = market.open_round()
        assert list(observed) == ["alpha"]
        assert (observed["alpha"].bids[1] == 0).all()
        report = market.close_round({"alpha": Offer.none()})
        row = report.services[1]
        assert (row.status, row.reward, row.budget, row.wanted) == (Status.WAITING, 0.0, 0, 0), number
        assert "late" not in report.feedback
        assert not [event for event in report.events if event.service == "late"]
        assert market.ledger.accounts["late"].granted == 0
    observed = market.open_round()
    assert list(observed) == ["alpha", "late"]
    assert (observed["alpha"].bids[1] > 0).all()
    assert observed["late"].budget == 20.0
    assert observed["late"].rounds == 10


def test_a_round_without_any_service_passes(make_market: MakeMarket, late: ServiceSpec) -> None:
    market = make_market([late])
    assert market.open_round() == {}
    report = market.close_round()
    assert [event.event for event in report.events] == [Kind.REFRESH]
    assert (market.open_round(), market.close_round({}).offers) == ({}, ())
    assert list(market.open_round()) == ["late"]
    with pytest.raises(MarketError, match="no service has offered"):
        market.close_round()


def test_a_market_that_everybody_left_waits_for_those_who_have_not_arrived(
    make_market: MakeMarket, late: ServiceSpec
) -> None:
    market = make_market([replace(late, name="early", arrival=1, target_accuracy=0.05), late])
    nobody(market)
    assert [state.status for state in market.states] == [Status.LEFT, Status.WAITING]
    assert not market.finished
    nobody(market)
    assert list(market.open_round()) == ["late"]


def test_what_is_paid_and_nothing_else_comes_off_the_budget_for_the_whole_run(
    make_market: MakeMarket, plain_service: ServiceSpec
) -> None:
    """A client asks 2.1; the other service outbids this one's second offer."""
    poor = replace(plain_service, name="poor", total_budget=5_000_000)
    market = make_market([poor, "rival"])
    assert market.open_round()["poor"].total_left == 5.0
    offers = {"poor": Offer(np.array([0, 1]), np.array([2.1, 2.2])), "rival": Offer(np.array([1]), np.array([3.0]))}
    assert market.close_round(offers).services[0].spent == 2_100_000
    observed = market.open_round()
    assert (observed["poor"].budget, observed["poor"].total_left) == (2.9, 2.9)
    assert (observed["rival"].budget, observed["rival"].total_left) == (20.0, None)
    report = market.close_round({"poor": Offer(np.array([0]), np.array([2.9])), "rival": Offer.none()})
    assert report.services[0].budget == 2_900_000
    assert market.open_round()["poor"].budget == 0.0


def test_a_market_continues_with_who_waits_and_what_is_left(make_market: MakeMarket, late: ServiceSpec) -> None:
    services = ["alpha", replace(late, total_budget=4_000_000)]
    one, other = make_market(services), make_market(services)
    for _ in range(2):
        nobody(one)
    other.restore(one.state())
    for market in (one, other):
        assert market.open_round()["late"].total_left == 4.0
        market.close_round({"alpha": Offer.none(), "late": Offer(np.array([2]), np.array([3.0]))})
        assert market.open_round()["late"].budget == 1.0


def test_a_market_continues_from_a_round_that_is_open(make_market: MakeMarket, late: ServiceSpec) -> None:
    services = ["alpha", replace(late, arrival=2, total_budget=4_000_000)]
    one, other = make_market(services), make_market(services)
    nobody(one)
    before = one.state()
    seen = one.open_round()
    assert one.state()["ledger"] == before["ledger"]
    other.restore(one.state())
    assert [it.budget for it in other.open_round().values()] == [it.budget for it in seen.values()]
    offers = {"alpha": Offer.none(), "late": Offer(np.array([2]), np.array([3.0]))}
    assert other.close_round(offers) == one.close_round(offers)
    assert other.state() == one.state()
    one.open_round()
    one.offer({"alpha": Offer.none(), "late": Offer.none()})
    with pytest.raises(MarketError, match="round 3 is still open"):
        one.state()


def test_what_is_not_spent_is_there_in_the_next_round_up_to_the_cap(
    make_market: MakeMarket, plain_service: ServiceSpec
) -> None:
    """A budget of 5 a round, up to 12 in all; a client costs 2.1."""
    market = make_market([replace(plain_service, name="saver", budget=5_000_000, budget_cap=12_000_000)], rounds=5)
    seen = []
    for wanted in (0, 1, 0, 2, 0):
        observed = market.open_round()["saver"]
        seen.append(observed.budget)
        clients = np.arange(wanted)
        market.close_round({"saver": Offer(clients, observed.own_bids[clients])})
    assert seen == [5, 10, 12, 12, 12]  # 10 - 2.1 + 5 is over the cap, and so is 12 - 4.2 + 5
    account = market.ledger.accounts["saver"]
    assert account.paid == 3 * 2_100_000
    assert account.granted == account.paid  # what is saved is granted when it can be spent, and was not
    assert (account.saved, account.lapsed) == (12_000_000, 0)
