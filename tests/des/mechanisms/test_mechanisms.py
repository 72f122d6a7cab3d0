"""Each mechanism with a few offers, worked out by hand; and what all of them keep, whatever the offers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import des.mechanism
from des.allocation import NO_CORE
from des.log_records import Kind, Outcome
from des.mechanism import MECHANISMS, Asks, Clearing, ClearingError, Mechanism, checked_asks, checked_clearing
from des.mechanisms.posted_price import PostedPrice
from des.mechanisms.proportional_share import procure
from des.mechanisms.vcg import VCG, shared
from des.money import MICRO
from des.observation import Offer
from flmarket.core.plugin_options import OptionsError
from flmarket.testing import check_mechanism
from support.books import book_of, prices_paid
from support.tiers import examples, slow

OPTIONS = {"posted-price": {"price_per_sample": 0.03}}
"""The options without which mechanisms cannot be created."""


# Uniform price


def test_uniform_price_is_the_best_losing_offer_of_the_same_client() -> None:
    book = book_of((0, 0, 6.0, 2.0), (1, 0, 5.0, 2.0), (2, 0, 4.0, 2.0), (2, 1, 9.0, 2.0), cores=2)
    assert prices_paid(MECHANISMS.create("uniform-price"), book) == [4.0, 4.0, None, 2.0]


def test_uniform_price_is_at_least_the_bid_to_each_service() -> None:
    book = book_of((0, 0, 6.0, 5.0), (1, 0, 5.0, 2.0), (2, 0, 4.0, 2.0), cores=2)
    assert prices_paid(MECHANISMS.create("uniform-price"), book) == [5.0, 4.0, None]


# Posted prices


def test_posted_prices_leave_out_who_asks_for_more() -> None:
    bids = np.array([[2_000_000, 4_000_000]])
    asks = checked_asks(PostedPrice(price_per_sample=0.03), bids, np.array([[100, 100]]), 1)
    assert asks.least.tolist() == [[3_000_000, 3_000_000]]
    assert asks.willing.tolist() == [[True, False]]


def test_at_posted_prices_a_draw_decides_not_the_offer() -> None:
    book = book_of((0, 0, 3.0, 2.0), (1, 0, 9.0, 2.0), ask=(3.0, 3.0))
    assert prices_paid(PostedPrice(price_per_sample=0.03), book) == [3.0, None]


def test_posted_prices_follow_demand_and_are_remembered() -> None:
    mechanism = PostedPrice(price_per_sample=0.03, step=0.5, most=0.04)
    mechanism.ask(np.array([[2_000_000], [2_000_000]]), np.array([[100], [100]]))
    book = book_of((0, 0, 3.0, 2.0), (1, 0, 3.0, 2.0), ask=(3.0, 3.0))
    mechanism.close(book, checked_clearing(mechanism, book, 1))
    assert mechanism.state() == {"price": "0.037500"}  # half of the offers were refused, no core was idle
    mechanism.close(book, checked_clearing(mechanism, book, 2))
    assert mechanism.state() == {"price": "0.040000"}
    mechanism.close(book_of(), checked_clearing(mechanism, book_of(), 3))
    assert mechanism.state() == {"price": "0.020000"}  # every core was idle
    again = PostedPrice(price_per_sample=0.03, step=0.5)
    again.restore(mechanism.state())
    assert again.price == 20_000


def test_a_posted_price_at_which_nobody_serves_rises() -> None:
    mechanism = PostedPrice(price_per_sample=0.01, step=0.5)
    mechanism.ask(np.array([[2_000_000]]), np.array([[100]]))
    mechanism.close(book_of(), checked_clearing(mechanism, book_of(), 1))
    assert mechanism.state() == {"price": "0.015000"}


@pytest.mark.parametrize("draws", [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
def test_under_posted_prices_a_client_serves_those_that_leave_it_the_most(draws: list[float]) -> None:
    """By draws alone, it would gain by asking too much of the services that cost it the most."""
    book = book_of((0, 0, 1.0, 0.9), (1, 0, 1.0, 0.2), (2, 0, 1.0, 0.5), ask=(1.0, 1.0, 1.0), cores=2, draws=draws)
    assert prices_paid(PostedPrice(price_per_sample=0.01), book) == [None, 1.0, 1.0]


@pytest.mark.parametrize(("draws", "paid"), [([0.1, 0.2], [1.0, None]), ([0.2, 0.1], [None, 1.0])])
def test_under_posted_prices_draws_decide_between_equal_bids(draws: list[float], paid: list[float | None]) -> None:
    book = book_of((0, 0, 1.0, 0.5), (1, 0, 1.0, 0.5), ask=(1.0, 1.0), budgets=(10.0, 10.0), draws=draws)
    assert prices_paid(PostedPrice(price_per_sample=0.01), book) == paid


# Proportional share


def test_proportional_share_buys_what_fits_into_shares_of_the_budget() -> None:
    """Singer's rule by hand: of a budget of 12, values 6, 6 and 6, bids 2, 4 and 5."""
    picked, price = procure(np.array([2, 4, 5]) * MICRO, np.array([6, 6, 6]) * MICRO, 12 * MICRO)
    # The second: 4 <= 12 * 6 / 12. The third: 5 > 12 * 6 / 18. The two get min(12 / 12, 5 / 6) for a unit of value.
    assert picked.tolist() == [True, True, False]
    assert price.tolist() == [5 * MICRO, 5 * MICRO, 0]


def test_proportional_share_promises_no_more_than_the_value() -> None:
    picked, price = procure(np.array([1]) * MICRO, np.array([3]) * MICRO, 12 * MICRO)
    assert (picked.tolist(), price.tolist()) == ([True], [3 * MICRO])


def test_a_client_that_is_worth_nothing_and_asks_for_nothing_is_picked() -> None:
    picked, price = procure(np.array([0, 1]) * MICRO, np.array([0, 2]) * MICRO, 2 * MICRO)
    assert (picked.tolist(), price.tolist()) == ([True, True], [0, 2 * MICRO])


def test_a_client_serves_those_that_leave_it_the_most() -> None:
    """The first service promises more, the second leaves more above what the client asks of it."""
    book = book_of((0, 0, 9.0, 8.0), (1, 0, 7.0, 1.0))
    assert prices_paid(MECHANISMS.create("proportional-share"), book) == [None, 7.0]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8),
    st.integers(0, 120),
    st.integers(0, 7),
    st.integers(0, 60),
)
def test_no_other_bid_earns_a_client_more_from_proportional_share(pairs, budget, who, other) -> None:
    """Singer's theorem, for one service whose values are fixed: a client's cost is its best bid."""
    pairs = [(bid, max(bid, value)) for bid, value in pairs]
    if who >= len(pairs):
        return
    bids, values = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    cost = int(bids[who])

    def gain(bid: int) -> int:
        reported = bids.copy()
        reported[who] = bid
        named = reported <= values  # whoever asks for more than it is worth is not named
        if not named[who]:
            return 0
        picked, price = procure(reported[named], values[named], budget)
        place = int(named[:who].sum())
        return int(price[place]) - cost if picked[place] else 0

    assert gain(other) <= gain(cost)


@pytest.mark.parametrize("mechanism", ["proportional-share", "score-auction"])
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 9), st.integers(0, 9)), max_size=40),
    st.lists(st.integers(0, 60), min_size=3, max_size=3),
)
def test_looking_at_the_best_offers_first_changes_nothing(mechanism, rows, budgets) -> None:
    offers = {(m, client): (m, client, float(max(pair)), float(min(pair))) for m, client, *pair in rows}
    book = book_of(*offers.values(), budgets=[float(budget) for budget in budgets])
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for first in (1, 1000):
            patch.setattr(des.mechanism, "FIRST", first)
            found.append(prices_paid(MECHANISMS.create(mechanism), book))
    assert found[0] == found[1]


# Iterated


def test_who_is_refused_offers_again(make_market, make_offer) -> None:
    """Beta loses client 0, and takes client 1 in the second step with the same money."""
    market = make_market(["alpha", "beta"], mechanism=MECHANISMS.create("iterated", steps=2))
    seen = market.open_round()
    assert list(seen) == ["alpha", "beta"]
    again = market.offer({"alpha": make_offer((0, 20.0)), "beta": make_offer((0, 19.0))})
    assert list(again) == ["beta"]
    assert again["beta"].budget == 20.0
    assert again["beta"].available.tolist() == [False, True, True]
    assert market.offer({"beta": make_offer((1, 20.0))}) == {}
    report = market.close_round()
    assert [(offer.service, offer.client, offer.outcome) for offer in report.offers] == [
        ("alpha", 0, Outcome.SERVED),
        ("beta", 0, Outcome.OUTBID),
        ("beta", 1, Outcome.SERVED),
    ]
    beta = report.services[1]
    assert (beta.offered, beta.spent, beta.budget) == (39_000_000, 20_000_000, 20_000_000)
    assert report.feedback["beta"].served.tolist() == [False, True]
    assert [event.amount for event in report.events if event.event is Kind.DECISION] == [
        20_000_000, 19_000_000, 20_000_000,
    ]  # fmt: skip


def test_a_better_offer_displaces_one_that_was_held(make_market, make_offer) -> None:
    market = make_market(["alpha", "beta"], mechanism=MECHANISMS.create("iterated", steps=3))
    market.open_round()
    first = market.offer({"alpha": make_offer((0, 5.0), (1, 3.0)), "beta": make_offer((0, 4.0))})
    assert list(first) == ["beta"]
    second = market.offer({"beta": make_offer((1, 6.0))})
    assert list(second) == ["alpha"]
    assert second["alpha"].budget == 15.0  # 5 of 20 are held by client 0
    assert market.offer({"alpha": Offer.none()}) == {}
    report = market.close_round()
    assert [(o.service, o.client, o.outcome is Outcome.SERVED) for o in report.offers] == [
        ("alpha", 0, True), ("alpha", 1, False), ("beta", 0, False), ("beta", 1, True),
    ]  # fmt: skip


def test_a_client_that_has_refused_is_not_asked_again(make_market, make_offer) -> None:
    market = make_market(["alpha", "beta"], mechanism=MECHANISMS.create("iterated"))
    market.open_round()
    market.offer({"alpha": make_offer((0, 5.0)), "beta": make_offer((0, 4.0))})
    with pytest.raises(
        Exception, match="client 0: the client does not serve this service in this round, or has refuse"
    ):
        market.offer({"beta": make_offer((0, 6.0))})


def test_a_round_can_be_closed_before_everybody_has_offered_again(make_market, make_offer) -> None:
    market = make_market(["alpha", "beta"], mechanism=MECHANISMS.create("iterated"))
    market.open_round()
    assert market.offer({"alpha": make_offer((0, 5.0)), "beta": make_offer((0, 4.0))})
    assert [offer.outcome for offer in market.close_round().offers] == [Outcome.SERVED, Outcome.OUTBID]


class TwoSteps(Mechanism):
    """Takes offers twice."""

    @property
    def steps(self):
        return 2


def test_of_a_mechanism_that_keeps_budgets_a_service_may_offer_again_with_all_of_its_budget(
    make_market, make_offer
) -> None:
    class LastOnly(TwoSteps):
        """The client that was named last serves at its bid; all others refuse."""

        keeps_budgets = True

        def clear(self, book):
            core = np.full(len(book.clients), NO_CORE)
            core[-1] = 0
            return Clearing(core, book.bids)

    market = make_market(["alpha"], mechanism=LastOnly())
    market.open_round()
    again = market.offer({"alpha": make_offer((0, 15.0), (1, 15.0))})  # budget 20
    assert again["alpha"].budget == 20.0
    market.offer({"alpha": make_offer((2, 30.0))})
    assert [offer.outcome is Outcome.SERVED for offer in market.close_round().offers] == [False, False, True]


def test_no_client_serves_an_offer_that_it_has_refused(make_market, make_offer) -> None:
    """The money of that offer has been released, and may have been offered to another client."""

    class Wavers(TwoSteps):
        def clear(self, book):
            core = np.full(len(book.clients), NO_CORE)
            if len(core) > 1:
                core[0] = 0
            return Clearing(core, book.payments)

    market = make_market(["alpha"], mechanism=Wavers())
    market.open_round()
    assert list(market.offer({"alpha": make_offer((0, 15.0))})) == ["alpha"]
    market.offer({"alpha": make_offer((1, 8.0))})
    with pytest.raises(ClearingError) as caught:
        market.close_round()
    assert str(caught.value).endswith(", round 1, client 0: serves alpha, whose offer it refused in an earlier step")


# VCG


def test_vcg_serves_the_highest_joint_surplus() -> None:
    """Beta values client 0 less than alpha does, but alpha has client 1, too, and beta has no other."""
    book = book_of((0, 0, 6.0, 1.0), (0, 1, 5.5, 1.0), (1, 0, 5.0, 1.0), budgets=(6.0, 6.0, 0.0))
    assert [price is not None for price in prices_paid(VCG(), book)] == [False, True, True]


def test_clarke_payments_to_clients() -> None:
    """Without client 0 the joint surplus falls from 5 + 4 to 4: it gets its bid and that 5."""
    book = book_of((0, 0, 6.0, 1.0), (1, 1, 5.0, 1.0))
    assert prices_paid(VCG(), book) == [6.0, 5.0]


def test_clarke_payments_of_services() -> None:
    """Alpha's being there costs beta a surplus of 3; nobody else wants client 1."""
    book = book_of((0, 0, 6.0, 1.0), (1, 0, 4.0, 1.0), (1, 1, 5.0, 1.0))
    assert prices_paid(VCG(side="services"), book) == [4.0, None, 1.0]


def test_vcg_serves_whoever_asks_for_what_is_offered() -> None:
    """No surplus, but nothing is gained by leaving cores idle."""
    book = book_of((0, 0, 2.0, 2.0), (1, 0, 2.0, 2.0), (1, 1, 2.0, 2.0))
    served = [price is not None for price in prices_paid(VCG(), book)]
    assert sum(served) == 2
    assert served[2]


@given(st.lists(st.integers(0, 10**9), max_size=9), st.floats(0, 1))
def test_an_amount_is_shared_without_loss(shares, part) -> None:
    amount = int(sum(shares) * part)
    parts = shared(amount, np.array(shares, dtype=np.int64))
    assert parts.sum() == amount
    assert (parts >= 0).all()
    assert (parts <= np.array(shares, dtype=np.int64)).all()


# All


@examples(150)
@given(st.data())
@pytest.mark.parametrize("name", MECHANISMS.builtin)
def test_every_mechanism_keeps_the_rules(name, data) -> None:
    """``clear`` checks cores, bids, offers and budgets; whoever is refused was refused for a reason."""
    services, clients, cores = (data.draw(st.integers(1, most)) for most in (3, 4, 3))
    pairs = data.draw(
        st.lists(st.tuples(st.integers(0, services - 1), st.integers(0, clients - 1)), unique=True, max_size=9)
    )
    bids = [data.draw(st.integers(0, 40)) / 10 for _ in pairs]
    payments = [bid + data.draw(st.integers(0, 40)) / 10 for bid in bids]
    mechanism = MECHANISMS.create(name, **OPTIONS.get(name, {}))
    sums = [sum(paid for (m, _), paid in zip(pairs, payments, strict=True) if m == one) for one in range(services)]
    budgets = [data.draw(st.integers(0, 200)) / 10 if mechanism.keeps_budgets else round(total, 6) for total in sums]
    offers = [(m, c, paid, bid) for (m, c), paid, bid in zip(pairs, payments, bids, strict=True)]
    clearing = checked_clearing(mechanism, book_of(*offers, cores=cores, budgets=budgets), 1)
    if not mechanism.keeps_budgets:
        idle = cores - np.bincount([c for _, c in pairs], clearing.core != NO_CORE, minlength=clients)
        assert all(idle[c] == 0 for (_, c), core in zip(pairs, clearing.core.tolist(), strict=True) if core == NO_CORE)


# vcg solves a program for each winner, and takes a quarter of a minute
@pytest.mark.parametrize("name", [name if name != "vcg" else slow(name)[0] for name in MECHANISMS.builtin])
def test_every_mechanism_keeps_its_contracts(name) -> None:
    check_mechanism(MECHANISMS.load(name), **OPTIONS.get(name, {}))


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("posted-price", {}, "needs the option 'price_per_sample'"),
        ("posted-price", {"price_per_sample": 2, "most": 1}, "price_per_sample must be between least and most, not 2"),
        ("posted-price", {"price_per_sample": 0.1, "step": 1}, "step must be a number of at least 0 and below 1"),
        ("posted-price", {"price_per_sample": "x"}, "price_per_sample must be a number from 0 to 1e+06, not 'x'"),
        ("posted-price", {"price_per_sample": 0.1, "most": {"a": 1}}, "most must be a number from 0 to 1e+06, not"),
        ("posted-price", {"price_per_sample": 0.0123456}, "price_per_sample has more than six decimals: 0.0123456"),
        ("iterated", {"steps": 0}, "steps must be a whole number from 1 to 1000, not 0"),
        ("iterated", {"steps": True}, "steps must be a whole number from 1 to 1000, not True"),
        ("iterated", {"steps": 3.0}, "steps must be a whole number from 1 to 1000, not 3.0"),
        ("vcg", {"side": "both"}, "side must be clients or services, not 'both'"),
        ("uniform-price", {"price": 1}, "takes no option 'price'"),
    ],
)
def test_impossible_options(name, options, problem) -> None:
    with pytest.raises(OptionsError) as caught:
        MECHANISMS.create(name, **options)
    assert problem in str(caught.value)


# What the market does not let a mechanism do


class Asking(Mechanism):
    """Asks for whatever it is told to."""

    def __init__(self, asks):
        self._asks = asks

    def ask(self, bids, data_size):
        return self._asks

    def clear(self, book):
        return Clearing(np.full(len(book.clients), NO_CORE), book.asks)


@pytest.mark.parametrize(
    ("asks", "problem"),
    [
        (None, "must return Asks, not NoneType"),
        (Asks(np.array([[1, 1, 1]])), "asks for less than a bid (eq. 5)"),
        (Asks(np.array([[1.0, 1, 1]])), "least must be 3 whole numbers, one for each service and client, not float64"),
        (Asks(np.full((1, 3), 10**7), np.array([True])), "willing must be booleans, one for each service and client"),
    ],
)
def test_what_no_mechanism_may_ask(make_market, asks, problem) -> None:
    market = make_market(["alpha"], mechanism=Asking(asks))
    with pytest.raises(ClearingError) as caught:
        market.open_round()
    assert str(caught.value).startswith(f"mechanism Asking.ask() ({__file__}:")
    assert problem in str(caught.value)


def test_no_service_pays_more_than_its_budget(make_market, make_offer) -> None:
    class Spends(Mechanism):
        keeps_budgets = True

        def clear(self, book):
            return Clearing(np.zeros(len(book.clients), np.int64), book.payments)

    market = make_market(["alpha"], mechanism=Spends())
    assert market.open_round()["alpha"].offer_limit == float("inf")
    with pytest.raises(ClearingError, match=r"service 0 would pay 30.000000, over its budget of 20.000000 \(eq. 4\)"):
        market.close_round({"alpha": make_offer((0, 15.0), (1, 15.0))})
