"""Contracts over rounds, by hand: who is bound for how long, what services can still spend, and what leaving costs.

Every client has 100 images for every service and asks 2.1; a service has 20 in each round, unless said otherwise.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.contracts import Contract, Contracts, ContractTerms
from des.log_records import Kind, Outcome, RoundReport
from des.market import Market
from des.mechanism import Book, Clearing, Mechanism
from des.mechanisms.iterated import Iterated
from des.mechanisms.pay_as_offered import PayAsOffered
from des.mechanisms.uniform_price import UniformPrice
from des.mechanisms.vcg import VCG
from des.observation import Offer
from des.offer_checks import OfferError
from des.schedule import Change
from des.timeline import Durations
from support.tiers import examples

MakeMarket = Callable[..., Market]
MakeOffer = Callable[..., Offer]
THREE = ContractTerms(rounds=3, cancel_fee=0.2)


def bound(report: RoundReport) -> list[tuple[str, int, float, str]]:
    return [(it.service, it.client, it.payment / 1e6, it.outcome.value) for it in report.offers]


@pytest.fixture
def hired(make_market: MakeMarket, make_offer: MakeOffer) -> Market:
    """After round 1: alpha has hired client 0 for 3.0, over beta's 2.5, and beta client 1 for 4.0; 2 is free."""
    market = make_market(["alpha", "beta"], terms=THREE)
    market.open_round()
    report = market.close_round({"alpha": make_offer((0, 3.0)), "beta": make_offer((0, 2.5), (1, 4.0))})
    assert bound(report) == [
        ("alpha", 0, 3.0, "served"), ("beta", 0, 2.5, "outbid"), ("beta", 1, 4.0, "served")
    ]  # fmt: skip
    return market


def test_a_client_that_has_served_is_hired_and_its_price_comes_off_the_budget_of_later_rounds(
    hired: Market, make_offer: MakeOffer
) -> None:
    """In round 2 alpha has 20 - 3 = 17 and beta 20 - 4 = 16 to offer, and client 2 alone is there for both."""
    seen = hired.open_round()
    assert {name: it.budget for name, it in seen.items()} == {"alpha": 17.0, "beta": 16.0}
    assert [it.available.tolist() for it in seen.values()] == [[False, False, True]] * 2
    with pytest.raises(OfferError, match="client 0: the client does not serve this service in this round"):
        hired.offer({"alpha": make_offer((0, 9.0)), "beta": make_offer()})
    report = hired.close_round({"alpha": make_offer((2, 2.1)), "beta": make_offer()})
    assert bound(report) == [
        ("alpha", 2, 2.1, "served"), ("alpha", 0, 3.0, "served"), ("beta", 1, 4.0, "served")
    ]  # fmt: skip
    assert [(it.budget, it.spent, it.served) for it in report.services] == [
        (20_000_000, 5_100_000, 2), (20_000_000, 4_000_000, 1)
    ]  # fmt: skip
    assert hired.ledger.income == [6_000_000, 8_000_000, 2_100_000]


def test_a_service_learns_what_came_of_its_own_offers_and_not_of_its_contracts(
    hired: Market, make_offer: MakeOffer
) -> None:
    """The stub's loss of a client is its index and a half: alpha trains on 2 and 0, and has offered to 2."""
    hired.open_round()
    feedback = hired.close_round({"alpha": make_offer((2, 2.1)), "beta": make_offer()}).feedback
    assert (feedback["alpha"].losses.tolist(), feedback["alpha"].paid.tolist()) == ([2.5], [2.1])
    assert feedback["beta"].served.tolist() == []


def test_after_its_rounds_a_contract_is_over_and_the_client_free(hired: Market, make_offer: MakeOffer) -> None:
    for _ in range(2):
        hired.open_round()
        hired.close_round({"alpha": make_offer(), "beta": make_offer()})
    seen = hired.open_round()["alpha"]
    assert (seen.budget, seen.available.tolist()) == (20.0, [True] * 3)
    assert hired.ledger.income == [9_000_000, 12_000_000, 0]


def test_no_contract_goes_on_after_the_last_round_and_none_begins_in_it(
    make_market: MakeMarket, make_offer: MakeOffer
) -> None:
    market = make_market(["alpha"], terms=THREE, rounds=2)
    market.open_round()
    market.close_round({"alpha": make_offer((0, 3.0))})
    assert market.contracts.state() == [list(Contract(0, 0, 0, 3_000_000, 2))]
    market.open_round()
    market.close_round({"alpha": make_offer((1, 3.0))})
    assert market.contracts.state() == []
    assert market.ledger.reserved == {}


def test_a_service_that_leaves_pays_a_share_of_what_is_outstanding(
    make_market: MakeMarket, make_offer: MakeOffer, stub_federation, plain_service
) -> None:
    """Alpha reaches 0.2 in round 1, with two rounds of 3.0 to come: 0.2 * 6.0 = 1.2. The client is free at once."""
    alpha = replace(plain_service, name="alpha", target_accuracy=0.2)
    market = make_market([alpha, "beta"], terms=THREE, federation=stub_federation())
    market.open_round()
    report = market.close_round({"alpha": make_offer((0, 3.0)), "beta": make_offer((1, 2.1))})
    assert [(it.service, it.client, it.amount) for it in report.events if it.event is Kind.CANCEL] == [
        ("alpha", 0, 1_200_000)
    ]
    assert [it.spent for it in report.services] == [4_200_000, 2_100_000]
    assert market.ledger.income == [4_200_000, 2_100_000, 0]
    assert market.open_round()["beta"].available.tolist() == [True, False, True]


def test_a_budget_for_the_whole_run_holds_the_money_of_all_rounds_at_once(
    make_market: MakeMarket, make_offer: MakeOffer, plain_service
) -> None:
    """Of 12, an offer for three rounds can have 4 in each. After 3.0 was paid once, 3.0 is left, and 6.0 held."""
    market = make_market([replace(plain_service, name="alpha", total_budget=12_000_000)], terms=THREE)
    seen = market.open_round()["alpha"]
    assert (seen.budget, seen.total_left) == (4.0, 12.0)
    market.close_round({"alpha": make_offer((0, 3.0))})
    assert market.ledger.reserved == {"alpha": 6_000_000}
    seen = market.open_round()["alpha"]
    assert (seen.budget, seen.total_left) == (1.0, 3.0)
    report = market.close_round({"alpha": make_offer()})
    assert report.services[0].budget == 4_000_000


def test_a_client_that_leaves_loses_the_pay_of_that_round_and_stays_hired(
    make_market: MakeMarket, make_offer: MakeOffer, plain_service
) -> None:
    """Where clients leave in half of the rounds, whoever has served once comes back, for nothing where it leaves."""
    service = replace(plain_service, name="alpha", total_budget=200_000_000)
    market = make_market([service], terms=ContractTerms(rounds=6), departure_rate=0.5, rounds=6, count=8)
    market.open_round()
    first = market.close_round({"alpha": make_offer(*((client, 2.1) for client in range(8)))})
    kept = [it.client for it in first.offers if it.outcome is Outcome.SERVED]
    left: Counter[int] = Counter()
    while not market.finished:
        market.open_round()
        report = market.close_round({"alpha": make_offer()})
        assert [it.client for it in report.offers] == kept
        left.update(it.client for it in report.offers if it.outcome is Outcome.DROPPED)
    assert 0 < len(kept) < 8
    assert left.total() > 0
    assert [market.ledger.income[it] for it in kept] == [2_100_000 * (6 - left[it]) for it in kept]
    assert market.ledger.left("alpha") == 200_000_000 - sum(market.ledger.income)


def test_a_client_that_is_offline_is_not_paid_for_the_round_which_counts(
    make_market: MakeMarket, make_offer: MakeOffer
) -> None:
    changes = [Change(2, offline=frozenset({0})), Change(3, offline=frozenset())]
    market = make_market(["alpha"], terms=THREE, interventions=changes)
    market.open_round()
    market.close_round({"alpha": make_offer((0, 3.0))})
    assert market.open_round()["alpha"].budget == 20.0
    assert market.close_round({"alpha": make_offer()}).offers == ()
    assert market.open_round()["alpha"].budget == 17.0
    assert bound(market.close_round({"alpha": make_offer()})) == [("alpha", 0, 3.0, "served")]
    assert market.open_round()["alpha"].available.all()


def test_an_intervention_takes_no_money_from_contracts_nor_their_cores(
    make_market: MakeMarket, make_offer: MakeOffer
) -> None:
    """With two cores, both services have client 0; then it has one, and alpha's budget is 1."""
    market = make_market(
        ["alpha", "beta"], terms=THREE, cores=2, interventions=[Change(2, budgets={"alpha": 1_000_000}, cores=1)]
    )
    market.open_round()
    market.close_round({"alpha": make_offer((0, 3.0)), "beta": make_offer((0, 2.1))})
    assert market.open_round()["alpha"].budget == 0.0
    report = market.close_round({"alpha": make_offer(), "beta": make_offer()})
    assert [(it.service, it.core, it.paid) for it in report.offers] == [("alpha", 0, 3_000_000), ("beta", 1, 2_100_000)]
    assert report.services[0].budget == 3_000_000


def test_a_market_continues_with_its_contracts(hired: Market, make_market: MakeMarket, make_offer: MakeOffer) -> None:
    other = make_market(["alpha", "beta"], terms=THREE)
    hired.open_round()
    other.restore(hired.state())  # of a round that is open, and opened again
    seen = other.open_round()
    assert {name: it.budget for name, it in seen.items()} == {"alpha": 17.0, "beta": 16.0}
    offers = {"alpha": make_offer((2, 3.3)), "beta": make_offer()}
    assert other.close_round(offers).offers == hired.close_round(offers).offers
    for kept in ("ledger", "contracts"):
        assert other.state()[kept] == hired.state()[kept]


def test_a_fee_is_rounded_down_to_a_millionth() -> None:
    contracts = Contracts(ContractTerms(rounds=3, cancel_fee=0.333333), rounds=9)
    contracts.sign(1, 0, [(4, 0, 1_000_001), (5, 0, 7)])
    contracts.sign(1, 1, [(6, 0, 3)])  # of another service, which goes on
    assert contracts.cancel(1, 0) == [(4, 666_666), (5, 4)]  # 2,000,002 and 14 times 0.333333
    assert contracts.due(()) == (Contract(1, 6, 0, 3, 3),)


class Patient(Iterated):
    """Keeps budgets in two steps: what services offer may be more than they have, and they pay their asks."""

    keeps_budgets = True

    def clear(self, book: Book) -> Clearing:
        self.budgets = book.budgets.tolist()
        return Clearing(super().clear(book).core, book.asks)


def test_a_mechanism_that_keeps_budgets_knows_what_contracts_leave_in_every_step(
    make_market: MakeMarket, make_offer: MakeOffer
) -> None:
    """In round 2 both want client 2, and alpha is refused: 20 - 2.1 are left then; its contract keeps its money."""
    mechanism = Patient(steps=2)
    market = make_market(["alpha", "beta"], terms=THREE, mechanism=mechanism)
    market.open_round()
    market.close_round({"alpha": make_offer((0, 30.0)), "beta": make_offer((1, 40.0))})
    market.open_round()
    again = market.offer({"alpha": make_offer((2, 30.0)), "beta": make_offer((2, 40.0))})
    assert {name: it.budget for name, it in again.items()} == {"alpha": 17.9}
    assert mechanism.budgets == [17_900_000, 17_900_000]
    report = market.close_round({"alpha": make_offer()})
    assert [it.spent for it in report.services] == [2_100_000, 4_200_000]


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "pay-as-offered": PayAsOffered, "uniform-price": UniformPrice, "vcg": VCG, "iterated": Iterated,
}  # fmt: skip


@examples(60)
@given(
    data=st.data(),
    mechanism=st.sampled_from(list(MECHANISMS)),
    terms=st.builds(ContractTerms, st.integers(1, 4), st.sampled_from([0.0, 0.25, 1.0])),
    cores=st.integers(1, 2),
    total=st.sampled_from([None, 15_000_000, 60_000_000]),
    departure_rate=st.sampled_from([0.0, 0.4]),
    timeline=st.sampled_from([Durations(0.01, 0.5), Durations(0.01, 0.5, deadline=2)]),
)
def test_whatever_is_offered_money_is_conserved_and_what_is_owed_is_held(
    make_market, plain_service, paper_clients, stub_federation, data, mechanism, terms, cores, total, **options: Any
) -> None:
    specs = [replace(plain_service, name=name, total_budget=total) for name in ("a", "b")]
    federation = stub_federation(start=0.5, gain=0.2)  # leaves after its third round with an update
    market = make_market(
        specs, paper_clients, count=5, cores=cores, rounds=6, terms=terms, federation=federation,
        mechanism=MECHANISMS[mechanism](), **options,
    )  # fmt: skip
    income: Counter[int] = Counter()
    while not market.finished:
        seen, under = market.open_round(), {(it[0], it[1]): it[3] for it in market.contracts.state()}
        while seen:
            offers = {}
            for name, it in seen.items():
                who = data.draw(st.permutations(np.flatnonzero(it.available).tolist()))
                fits = np.cumsum(it.own_bids[who]) <= it.budget + 1e-9 if who else np.empty(0, dtype=bool)
                offers[name] = Offer(np.array(who, np.int64)[fits], it.own_bids[who][fits] if who else np.empty(0))
            seen = market.offer(offers)
        report = market.close_round()
        places = {"a": 0, "b": 1}
        for offer in report.offers:
            price = under.get((places[offer.service], offer.client))
            assert price is None or (offer.payment == price and offer.outcome is not Outcome.OUTBID)
            income[offer.client] += offer.paid or 0
        for event in report.events:
            if event.event is Kind.CANCEL:
                income[event.client] += event.amount
        market.ledger.check()
        held = Counter({it.service: 0 for it in report.services})
        for m, _, _, price, last in market.contracts.state():
            held["ab"[m]] += price * (last - report.round)
        for row in report.services:
            assert market.ledger.reserved.get(row.service, 0) == held[row.service]
            left = market.ledger.left(row.service)
            assert left is None or left >= 0
            fees = sum(it.amount for it in report.events if (it.event, it.service) == (Kind.CANCEL, row.service))
            assert row.spent - fees <= row.budget
    assert market.ledger.income == [income[client] for client in range(5)]
    assert market.contracts.state() == []
