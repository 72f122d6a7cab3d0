"""Clients that come one after another within a round, by hand: alpha has 5 in each round, beta 20; clients ask 2.1."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.allocation import turns_of
from des.contracts import ContractTerms
from des.log_records import RoundReport
from des.market import Market, MarketError
from des.mechanisms.pay_as_offered import PayAsOffered
from des.mechanisms.uniform_price import UniformPrice
from des.observation import Observation, Offer
from des.offer_checks import OfferError
from des.schedule import Change
from fl.arithmetic.draws import draw_key
from support.tiers import examples

MakeMarket = Callable[..., Market]


def whose_turn(seen: Mapping[str, Observation]) -> int:
    [client] = {int(it) for each in seen.values() for it in np.flatnonzero(each.available)}
    return client


def play(
    market: Market, *amounts: tuple[float | None, float | None]
) -> tuple[list[int], list[list[float]], RoundReport]:
    """Let alpha and beta offer so much for each client that comes; return the clients, and what both had to offer."""
    seen, order, had = market.open_round(), [], []
    for turn in amounts:
        order.append(whose_turn(seen))
        had.append([it.budget for it in seen.values()])
        offers = {
            name: Offer.none() if amount is None else Offer(np.array([order[-1]]), np.array([amount]))
            for name, amount in zip(("alpha", "beta"), turn, strict=True)
        }
        seen = market.offer(offers)
    assert seen == {}
    return order, had, market.close_round()


@pytest.fixture
def alpha(plain_service):
    return replace(plain_service, name="alpha", budget=5_000_000)


def test_a_service_that_loses_a_client_has_the_money_for_the_next_ones(make_market: MakeMarket, alpha) -> None:
    """Alpha loses the first client with 3.0 to 3.5, has the second for 2.5, and 5 - 2.5 = 2.5 for the third."""
    market = make_market([alpha, "beta"], sequential=True)
    order, had, report = play(market, (3.0, 3.5), (2.5, None), (2.5, 2.6))
    assert sorted(order) == [0, 1, 2]
    assert had == [[5.0, 20.0], [5.0, 16.5], [2.5, 16.5]]
    rows = [(it.service, it.client, it.payment / 1e6, it.outcome.value) for it in report.offers]
    assert rows == [
        ("alpha", order[0], 3.0, "outbid"), ("alpha", order[1], 2.5, "served"), ("alpha", order[2], 2.5, "outbid"),
        ("beta", order[0], 3.5, "served"), ("beta", order[2], 2.6, "served"),
    ]  # fmt: skip
    assert [(it.budget, it.offered, it.spent) for it in report.services] == [
        (5_000_000, 8_000_000, 2_500_000), (20_000_000, 6_100_000, 6_100_000)
    ]  # fmt: skip


def test_under_a_second_price_what_the_winner_does_not_pay_is_free_for_the_next_client(
    make_market: MakeMarket, alpha
) -> None:
    """The rival's 2.2 and then 2.5 are the prices of 5.0 and 2.8; alpha's last offer meets none, and costs the bid."""
    market = make_market([alpha, "beta"], sequential=True, mechanism=UniformPrice())
    order, had, report = play(market, (5.0, 2.2), (2.8, 2.5), (None, 3.0))
    assert had == [[5.0, 20.0], [2.8, 20.0], [pytest.approx(0.3), 20.0]]
    paid = {(it.service, it.client): it.paid for it in report.offers if it.paid}
    assert paid == {("alpha", order[0]): 2_200_000, ("alpha", order[1]): 2_500_000, ("beta", order[2]): 2_100_000}


def test_the_order_is_drawn_for_each_round_and_who_is_not_there_does_not_come(make_market: MakeMarket) -> None:
    market = make_market(
        ["alpha", "beta"], sequential=True, count=8, interventions=[Change(2, offline=frozenset({3, 5}))]
    )
    nobody = (None, None)
    first, _, _ = play(market, *[nobody] * 8)
    second, _, _ = play(market, *[nobody] * 6)
    assert sorted(first) == list(range(8))
    assert sorted(second) == [0, 1, 2, 4, 6, 7]
    assert second != [it for it in first if it in second]


def test_clients_that_are_added_do_not_change_the_order_of_the_others() -> None:
    orders = [turns_of(draw_key(7, "turns"), 3, np.ones((2, count), dtype=np.bool_), {2}) for count in (6, 40)]
    assert [it for it in orders[1] if it < 6] == orders[0]


def test_services_know_whose_turn_it_is_and_how_many_are_to_come(make_market: MakeMarket) -> None:
    """Four of six come; each turn has a generator of its own, which a market played again has, too."""
    drawn = []
    for _ in range(2):
        market = make_market(
            ["alpha", "beta"], sequential=True, count=6, interventions=[Change(1, offline=frozenset({3, 5}))]
        )
        seen, turns, numbers = market.open_round(), [], []
        while seen:
            assert seen["alpha"].turn == seen["beta"].turn
            assert np.flatnonzero(seen["alpha"].available).tolist() == [seen["alpha"].turn.client]
            turns.append(seen["alpha"].turn)
            numbers += [it.rng().random() for it in seen.values()]
            seen = market.offer(dict.fromkeys(seen, Offer.none()))
        market.close_round()
        assert [(it.number, it.of) for it in turns] == [(1, 4), (2, 4), (3, 4), (4, 4)]
        assert len(set(numbers)) == 8
        drawn.append(numbers)
    assert drawn[0] == drawn[1]


def test_an_offer_to_a_client_whose_turn_it_is_not_is_refused_by_name(make_market: MakeMarket) -> None:
    market = make_market(["alpha", "beta"], sequential=True)
    client = whose_turn(market.open_round())
    other = (client + 1) % 3
    with pytest.raises(OfferError, match=f"client {other}: it is the turn of client {client}; only that one may be"):
        market.offer({"alpha": Offer(np.array([other]), np.array([3.0])), "beta": Offer.none()})


def test_where_all_come_at_once_it_is_nobodys_turn(make_market: MakeMarket) -> None:
    market = make_market(["alpha", "beta"])
    assert {it.turn for it in market.open_round().values()} == {None}
    assert market.preview("alpha").turn is None


def test_where_no_client_is_there_services_decide_once(make_market: MakeMarket) -> None:
    market = make_market(["alpha", "beta"], sequential=True, interventions=[Change(1, offline=frozenset(range(3)))])
    assert not any(it.available.any() for it in market.open_round().values())
    assert market.close_round({"alpha": Offer.none(), "beta": Offer.none()}).offers == ()


def test_clients_under_a_contract_do_not_come(make_market: MakeMarket, alpha) -> None:
    """Alpha pays 2.1 for the one that it has, so that 5 - 2.1 = 2.9 is left."""
    market = make_market([alpha, "beta"], sequential=True, terms=ContractTerms(2))
    order, _, _ = play(market, (2.1, None), (None, None), (None, None))
    others, had, report = play(market, (None, None), (2.9, None))
    assert sorted([*others, order[0]]) == [0, 1, 2]
    assert had == [[2.9, 20.0], [2.9, 20.0]]
    assert [(it.client, it.paid) for it in report.offers] == [(others[1], 2_900_000), (order[0], 2_100_000)]


def test_a_round_does_not_end_before_all_clients_have_come(make_market: MakeMarket) -> None:
    market = make_market(["alpha", "beta"], sequential=True)
    market.open_round()
    with pytest.raises(MarketError, match="clients are still to come"):
        market.close_round({"alpha": Offer.none(), "beta": Offer.none()})


@examples(40)
@given(
    data=st.data(),
    mechanism=st.sampled_from([PayAsOffered, UniformPrice]),
    cores=st.integers(1, 2),
    rounds=st.integers(1, 3),
)
def test_whatever_is_offered_in_turn_nobody_pays_more_than_its_budget(
    make_market, plain_service, data, mechanism, cores, rounds
) -> None:
    specs = [replace(plain_service, name=name, budget=7_000_000) for name in ("a", "b", "c")]
    market = make_market(
        specs, cores=cores, terms=ContractTerms(rounds), rounds=3, sequential=True, mechanism=mechanism()
    )
    while not market.finished:
        seen = market.open_round()
        while seen:
            offers = {}
            for name, it in seen.items():
                wanted = [int(client) for client in np.flatnonzero(it.available)]
                most = data.draw(st.sampled_from([0.0, 2.1, 2.4, it.budget]))
                who = wanted if 2.1 <= most <= it.budget else []
                offers[name] = Offer(np.array(who, dtype=np.int64), np.full(len(who), most))
            seen = market.offer(offers)
        report = market.close_round()
        market.ledger.check()
        assert all(it.spent <= it.budget for it in report.services)
        assert sum(market.ledger.income) == sum(it.paid for it in market.ledger.accounts.values())
