"""Pay after delivery: what a mechanism sees of a round, prices set once updates are there, and what it learns."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from des.allocation import allocate
from des.clients.data_tables import Group, PopulationSpec
from des.costs.linear import Linear
from des.log_records import Kind, Outcome
from des.market import Market
from des.mechanism import Book, Clearing, ClearingError, Deliveries, Mechanism
from des.timeline import Durations
from support.federations import FormulaFederation

LATE = Durations(seconds_per_sample=0.01, upload_seconds=0.5, deadline=1.0)  # 100 images take 1.5 seconds


class ExPost(Mechanism):
    """Clears as the paper does; a function says what is paid for what was delivered."""

    def __init__(self, pay: Callable[[Book, Deliveries], Any]) -> None:
        self.pay = pay
        self.seen: list[Any] = []

    def clear(self, book):
        self.seen.append(book.round)
        return Clearing(allocate(book.services, book.clients, book.payments, book.cores, book.tie_order), book.payments)

    def settle(self, book, clearing, deliveries):
        return self.pay(book, deliveries)

    def close(self, book, clearing):
        self.seen.append(book.deliveries)


class Cheap(ExPost):
    """May pay less than the bid."""

    below_bid = True


def half_of_what_is_above_the_bid(book: Book, deliveries: Deliveries) -> Any:
    at = deliveries.offers
    return book.bids[at] + (book.payments[at] - book.bids[at]) // 2


def play(make_market, make_offer, mechanism, **market):
    """Beta outbids alpha for client 0, and alpha has client 1; bids are 2.1."""
    market = make_market(["alpha", "beta"], mechanism=mechanism, **market)
    market.open_round()
    return market, market.close_round({"alpha": make_offer((0, 3.0), (1, 4.1)), "beta": make_offer((0, 6.1), (2, 2.1))})


def test_prices_are_set_when_updates_are_there_and_money_follows_them(make_market, make_offer) -> None:
    """(2.1 + 4.1) / 2 = 3.1, (2.1 + 6.1) / 2 = 4.1, and 2.1 where nothing is above the bid."""
    mechanism = ExPost(half_of_what_is_above_the_bid)
    market, report = play(make_market, make_offer, mechanism)
    assert [(it.service, it.client, it.paid) for it in report.offers] == [
        ("alpha", 0, None), ("alpha", 1, 3_100_000), ("beta", 0, 4_100_000), ("beta", 2, 2_100_000)
    ]  # fmt: skip
    assert [event.amount for event in report.events if event.event is Kind.PAY] == [3_100_000, 4_100_000, 2_100_000]
    assert market.ledger.income == [4_100_000, 3_100_000, 2_100_000]
    assert report.feedback["beta"].paid.tolist() == [4.1, 2.1]
    assert [it.spent for it in report.services] == [3_100_000, 6_200_000]


def test_a_mechanism_sees_the_round_and_learns_what_was_delivered(make_market, make_offer) -> None:
    mechanism = ExPost(half_of_what_is_above_the_bid)
    market, report = play(make_market, make_offer, mechanism)
    view, (alpha, beta) = mechanism.seen
    assert (view.number, view.rounds) == (1, 10)
    assert view.data_size.tolist() == [[100] * 3] * 2
    assert view.emd == pytest.approx(np.full((2, 3), 0.4))
    assert view.target.tolist() == [0.97, 0.97]
    assert view.accuracy.tolist() == [0.0, 0.0]  # of the first round, in which no model has been evaluated yet
    assert not view.dqi.flags.writeable
    assert (alpha.service, alpha.offers.tolist(), alpha.delivered.tolist()) == (0, [1], [True])
    assert (beta.service, beta.offers.tolist(), beta.delivered.tolist()) == (1, [2, 3], [True, True])
    accuracies = {it.service: round(it.accuracy, 6) for it in report.services}
    assert (alpha.before, alpha.after) == (0.0, accuracies["alpha"])
    market.open_round()
    market.close_round({name: make_offer((2, 2.1)) for name in accuracies})
    assert mechanism.seen[2].accuracy.tolist() == list(accuracies.values())
    names = list(accuracies)
    assert [it.before for it in mechanism.seen[3]] == [accuracies[names[it.service]] for it in mechanism.seen[3]]


def test_who_does_not_deliver_is_not_paid_whatever_the_mechanism_says(make_market, make_offer) -> None:
    mechanism = ExPost(half_of_what_is_above_the_bid)
    market, report = play(make_market, make_offer, mechanism, timeline=LATE)
    assert {it.outcome for it in report.offers} == {Outcome.DROPPED, Outcome.OUTBID}
    assert market.ledger.income == [0, 0, 0]
    assert [it.delivered.tolist() for it in mechanism.seen[1]] == [[False], [False, False]]


def test_a_mechanism_sees_what_is_left_for_the_whole_run_as_the_round_began(
    make_market, make_offer, plain_service
) -> None:
    """Alpha pays 2.1 + 0.4 / 2 = 2.3 of its 5; what it paid in a round shows in the next one."""
    mechanism = ExPost(half_of_what_is_above_the_bid)
    services = [replace(plain_service, name="alpha", total_budget=5_000_000), "beta"]
    market = make_market(services, mechanism=mechanism)
    for _ in range(2):
        market.open_round()
        market.close_round({"alpha": make_offer((0, 2.5)), "beta": make_offer()})
    first, second = mechanism.seen[::2]
    assert first.total_left.tolist() == [5_000_000, np.inf]
    assert second.total_left.tolist() == [2_700_000, np.inf]
    assert first.record is None


class Together(ExPost):
    """Sets all prices when the last service is done: the offer where the model is the best of all, else the bid."""

    settles_together = True

    def settle(self, book, clearing, deliveries):
        self.seen.append(book.deliveries)
        best = max(it.after for it in book.deliveries)
        return (book.payments if deliveries.after == best else book.bids)[deliveries.offers]


def test_prices_of_all_services_may_be_set_when_the_last_one_is_done(make_market, make_offer, plain_service) -> None:
    """Alpha is done after 0.75 s and beta after 1.5 s, when both pay: beta, whose model is the best, its offers.

    Alpha, which meets its target, leaves then, too.
    """
    mechanism = Together(half_of_what_is_above_the_bid)
    slow = Group(count=1, data_sizes=(100,), emds=(0.4,), cost=Linear(per_sample=0.025, per_emd=1.0))
    clients = PopulationSpec(cores=1, groups=(slow, replace(slow, speeds=(4.0,)), slow))
    services = [replace(plain_service, name="alpha", target_accuracy=0.15), replace(plain_service, name="beta")]
    federation = FormulaFederation(["alpha", "beta"])
    market = make_market(services, clients, mechanism=mechanism, federation=federation)
    market.open_round()
    report = market.close_round({"alpha": make_offer((1, 4.1)), "beta": make_offer((0, 6.1), (2, 2.5))})
    after = [it.accuracy for it in report.services]
    assert after == [0.19, 0.263636]
    assert [(it.sim_time, it.event, it.service, it.client, it.amount) for it in report.events[-6:]] == [
        (1_500_000, Kind.AGGREGATE, "beta", None, 200),
        (1_500_000, Kind.EVALUATE, "beta", None, after[1]),
        (1_500_000, Kind.PAY, "alpha", 1, 2_100_000),
        (1_500_000, Kind.EXIT, "alpha", None, after[0]),
        (1_500_000, Kind.PAY, "beta", 0, 6_100_000),
        (1_500_000, Kind.PAY, "beta", 2, 2_500_000),
    ]
    assert [event.sim_time for event in report.events if event.event is Kind.EVALUATE] == [750_000, 1_500_000]
    _, first, second, closed = mechanism.seen
    assert first is second is closed
    assert [(it.service, it.delivered.tolist(), it.after) for it in closed] == [
        (0, [True], after[0]), (1, [True, True], after[1])
    ]  # fmt: skip


class Counting(ExPost):
    """Has deliveries counted."""

    counts_deliveries = True


def test_awards_and_deliveries_are_counted_by_service_and_client(make_market, make_offer) -> None:
    """Client 1 trains for 0.25 s and delivers by the deadline; the others take 1.5 s and do not.

    In each round alpha has client 1 and beta clients 0 and 2.
    """
    mechanism = Counting(half_of_what_is_above_the_bid)
    slow = Group(count=1, data_sizes=(100,), emds=(0.4,), cost=Linear(per_sample=0.025, per_emd=1.0))
    clients = PopulationSpec(cores=1, groups=(slow, replace(slow, speeds=(4.0,)), slow))
    market = make_market(["alpha", "beta"], clients, mechanism=mechanism, timeline=LATE)
    states = []
    for _ in range(3):
        market.open_round()
        market.close_round({"alpha": make_offer((0, 3.0), (1, 4.1)), "beta": make_offer((0, 6.1), (2, 2.1))})
        states.append(market.state()["mechanism"])
    for number, view in enumerate(mechanism.seen[::2]):
        awarded, delivered = view.record
        assert awarded.tolist() == [[0, number, 0], [number, 0, number]]
        assert delivered.tolist() == [[0, number, 0], [0, 0, 0]]
        assert not view.record.flags.writeable
    assert states[-1] == {"noted": {}, "record": [[[0, 3, 0], [3, 0, 3]], [[0, 3, 0], [0, 0, 0]]]}


def test_a_resumed_market_counts_on_and_one_that_has_not_begun_has_counted_nothing(make_market, make_offer) -> None:
    def market() -> Market:
        return make_market(["alpha"], mechanism=Counting(half_of_what_is_above_the_bid))

    first, second = market(), market()
    second.restore(first.state())
    first.open_round()
    first.close_round({"alpha": make_offer((0, 2.5))})
    assert second.mechanism.record is None
    second.restore(first.state())
    second.open_round()
    second.close_round({"alpha": make_offer((0, 2.5), (2, 2.5))})
    assert second.mechanism.record.tolist() == [[[2, 0, 1]], [[2, 0, 1]]]


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_the_logs_whatever_is_offered(make_market, make_offer, seed) -> None:
    rng = np.random.default_rng(seed)
    mechanism = Counting(half_of_what_is_above_the_bid)
    market = make_market(["alpha", "beta"], mechanism=mechanism, departure_rate=0.5, cores=2, rounds=6)
    counts = np.zeros((2, 2, 3), dtype=np.int64)
    for _ in range(6):
        market.open_round()
        some = {name: rng.permutation(3)[: rng.integers(4)].tolist() for name in ("alpha", "beta")}
        report = market.close_round({name: make_offer(*((c, 2.5) for c in who)) for name, who in some.items()})
        assert mechanism.seen[-2].record.tolist() == counts.tolist()
        for row in report.offers:
            place = int(row.service == "beta"), row.client
            counts[(0, *place)] += row.outcome is not Outcome.OUTBID
            counts[(1, *place)] += row.outcome is Outcome.SERVED


@pytest.mark.parametrize(
    ("pay", "problem"),
    [
        (lambda book, its: book.bids[its.offers] - 1, "client 1: the price 2.099999 is below 2.100000"),
        (
            lambda book, its: book.payments[its.offers] + 1,
            "client 1: the price 4.100001 is above the offer of 4.100000",
        ),
        (
            lambda book, its: [2_100_000] * 3,
            "prices must be 1 whole numbers, one for each offer taken, not int64 of shape (3,)",
        ),
    ],
)
def test_what_no_settlement_may_be(make_market, make_offer, pay, problem) -> None:
    with pytest.raises(ClearingError) as error:
        play(make_market, make_offer, ExPost(pay))
    assert str(error.value).startswith(f"mechanism ExPost.settle() ({__file__}:")
    assert str(error.value).endswith(problem)


def test_a_mechanism_that_keeps_budgets_must_keep_them_when_it_settles_too(make_market, make_offer) -> None:
    class Keeps(ExPost):
        keeps_budgets = True

        def clear(self, book):
            clearing = super().clear(book)
            return Clearing(clearing.core, book.bids)

    market = make_market(["alpha"], mechanism=Keeps(lambda book, its: book.payments[its.offers]))
    market.open_round()
    with pytest.raises(ClearingError, match=r"service 0 would pay 24.000000, over its budget of 20.000000 \(eq. 4\)"):
        market.close_round({"alpha": make_offer((0, 12.0), (1, 12.0))})


def test_what_is_said_for_work_that_was_not_delivered_takes_nothing_of_the_budget(make_market, make_offer) -> None:
    """Of 12 + 12, with a budget of 20, only the 12 of client 1 are due, who is in time."""

    class Keeps(ExPost):
        keeps_budgets = True

        def clear(self, book):
            return Clearing(super().clear(book).core, book.bids)

    slow = Group(count=1, data_sizes=(100,), emds=(0.4,), cost=Linear(per_sample=0.025, per_emd=1.0))
    clients = PopulationSpec(cores=1, groups=(slow, replace(slow, speeds=(4.0,))))
    mechanism = Keeps(lambda book, its: book.payments[its.offers])
    market = make_market(["alpha"], clients, mechanism=mechanism, timeline=LATE)
    market.open_round()
    report = market.close_round({"alpha": make_offer((0, 12.0), (1, 12.0))})
    assert [row.paid for row in report.offers] == [None, 12_000_000]


def test_only_a_mechanism_that_says_so_pays_less_than_the_bid(make_market, make_offer) -> None:
    market, _ = play(make_market, make_offer, Cheap(lambda book, its: book.bids[its.offers] // 3))
    assert market.ledger.income == [700_000] * 3


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_money_is_conserved_and_within_what_was_held_whatever_a_settlement_draws(
    make_market, make_offer, seed, together
) -> None:
    class Drawing(ExPost):
        settles_together = together

    rng = np.random.default_rng(seed)

    def between(book: Book, its: Deliveries) -> Any:
        return rng.integers(book.bids[its.offers], book.payments[its.offers] + 1)

    market = make_market(["alpha", "beta"], mechanism=Drawing(between), departure_rate=0.5, cores=2, rounds=6)
    for _ in range(6):
        market.open_round()
        offers = {
            name: make_offer(*((c, float(rng.uniform(2.2, 6.6))) for c in range(3))) for name in ("alpha", "beta")
        }
        report = market.close_round(offers)  # which checks that every micro-unit is accounted for
        for row in report.offers:
            assert (row.paid is None) == (row.outcome is not Outcome.SERVED)
            assert row.paid is None or row.bid <= row.paid <= row.payment


def test_a_book_of_no_round_says_so() -> None:
    empty = np.empty(0, dtype=np.int64)
    book = Book(empty, empty, empty, empty, empty, empty, 1, lambda clients: np.zeros(0))
    with pytest.raises(LookupError, match="this book is of no market's round"):
        book.round  # noqa: B018 - reading it is what is refused
