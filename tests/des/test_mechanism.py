"""The seam at which a round is cleared: what the paper's mechanism does, what another may do, and what none may."""

import re

import numpy as np
import pytest

from des.allocation import NO_CORE
from des.behaviour import BehaviourError
from des.behaviours.truthful import Truthful
from des.log_records import Kind, Outcome
from des.mechanism import MECHANISMS, Asks, Clearing, ClearingError, Mechanism
from des.mechanisms.pay_as_offered import PayAsOffered
from des.mechanisms.uniform_price import UniformPrice
from des.observation import Offer

WANTED = {"alpha": (0, 6.0), "beta": (0, 5.0), "gamma": (0, 4.0)}


def play(make_market, make_offer, mechanism, *, cores=1, wanted=WANTED):
    market = make_market(list(wanted), cores=cores, mechanism=mechanism)
    market.open_round()
    return market, market.close_round({name: make_offer(one) for name, one in wanted.items()})


def test_a_mechanism_can_ask_less_than_was_offered(make_market, make_offer) -> None:
    """Price and offer are two things in every record, and the difference lapses with the rest of the budget."""
    market, report = play(make_market, make_offer, UniformPrice(), cores=2)
    assert [(offer.payment, offer.paid) for offer in report.offers] == [
        (6_000_000, 4_000_000),
        (5_000_000, 4_000_000),
        (4_000_000, None),
    ]
    assert [event.amount for event in report.events if event.event is Kind.AWARD] == [6_000_000, 5_000_000]
    assert [event.amount for event in report.events if event.event is Kind.PAY] == [4_000_000, 4_000_000]
    alpha = report.services[0]
    assert (alpha.offered, alpha.spent, alpha.mean_payment) == (6_000_000, 4_000_000, 4.0)
    assert report.feedback["alpha"].paid.tolist() == [4.0]
    assert report.feedback["gamma"].paid.tolist() == [0.0]
    assert market.ledger.income == [8_000_000, 0, 0]
    assert market.ledger.accounts["alpha"].lapsed == 20_000_000 - 4_000_000


def broken(core, price):
    """A mechanism that always gives the same, however wrong."""

    class Broken(Mechanism):
        def clear(self, book):
            return Clearing(np.array(core), np.array(price))

    return Broken()


@pytest.mark.parametrize(
    ("core", "price", "problem"),
    [
        ([0, 0, -1], [6_000_000] * 3, "round 1: one core of a client serves two offers (eq. 2)"),
        ([0, 2, -1], [5_000_000] * 3, "round 1: cores are 0 to 1, not 0 to 2 (eq. 2)"),
        ([-1, -1, -2], [5_000_000] * 3, "round 1: cores are 0 to 1, not -2 to -2 (eq. 2)"),
        ([0, 1, -1], [6_000_000, 2_000_000, 0], "client 0: the price 2.000000 is below the bid 2.100000 (eq. 5)"),
        ([0, 1, -1], [6_000_001, 5_000_000, 0], "client 0: the price 6.000001 is above the offer of 6.000000 (eq. 4)"),
        ([0, 1], [6_000_000, 5_000_000], "core must be 3 whole numbers, one for each offer, not int64 of shape (2,)"),
        ([0, 1, -1], [6e6, 5e6, 0.0], "price must be 3 whole numbers, one for each offer, not float64 of shape (3,)"),
    ],
)
def test_what_no_mechanism_may_do(make_market, make_offer, core, price, problem) -> None:
    """A wrong clearing ends the run with a message that names mechanism and round; no money has moved."""
    with pytest.raises(ClearingError) as error:
        play(make_market, make_offer, broken(core, price), cores=2)
    assert str(error.value).startswith(f"mechanism Broken.clear() ({__file__}:")
    assert str(error.value).endswith(problem)


def giving(given):
    """A mechanism that returns whatever it is given."""

    class Odd(Mechanism):
        def clear(self, book):
            return given

    return Odd()


def test_a_clearing_may_be_made_of_lists(make_market, make_offer) -> None:
    _, report = play(make_market, make_offer, giving(Clearing([0, -1, -1], [6_000_000, 0, 0])))
    assert [offer.paid for offer in report.offers] == [6_000_000, None, None]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, "must return a Clearing, not NoneType"),
        (([0, -1, -1], [6_000_000, 0, 0]), "must return a Clearing, not tuple"),
        (
            Clearing([0, -1, -1], np.array([6_000_000, 0, 2**64 - 1], np.uint64)),
            "price must be 3 whole numbers, one for each offer, not uint64 of shape (3,)",
        ),
        (
            Clearing([0, -1, -1], [6e6, float("nan"), float("nan")]),
            "price must be 3 whole numbers, one for each offer, not float64 of shape (3,)",
        ),
        (Clearing(None, [0, 0, 0]), "core must be 3 whole numbers, one for each offer, not object of shape ()"),
        (Clearing([[0], [0, 1], -1], [0, 0, 0]), "core must be 3 whole numbers, one for each offer: "),
    ],
)
def test_what_is_no_clearing_of_whole_numbers(make_market, make_offer, given, problem) -> None:
    with pytest.raises(ClearingError) as error:
        play(make_market, make_offer, giving(given))
    assert f"), round 1: {problem}" in str(error.value)
    assert str(error.value).startswith(f"mechanism Odd.clear() ({__file__}:")


@pytest.mark.parametrize("name", ["services", "clients", "payments", "bids"])
def test_a_mechanism_cannot_change_what_its_clearing_is_checked_against(make_market, make_offer, name) -> None:
    class Lowers(Mechanism):
        def clear(self, book):
            getattr(book, name)[:] = 0
            return Clearing(np.array([0, -1, -1]), np.zeros(3, np.int64))

    with pytest.raises(ValueError, match="assignment destination is read-only"):
        play(make_market, make_offer, Lowers())


def test_prices_of_refused_offers_mean_nothing(make_market, make_offer) -> None:
    _, report = play(make_market, make_offer, broken([0, -1, -1], [6_000_000, -1, 99_000_000]))
    assert [offer.paid for offer in report.offers] == [6_000_000, None, None]


class Halving(UniformPrice):
    """Pays half of what was checked, as far as it can."""

    force = False

    def close(self, book, clearing):
        if self.force:
            clearing.price.setflags(write=True)
            clearing.price[:] //= 2
        else:
            clearing.price[:] //= 2


def test_a_clearing_that_was_checked_cannot_be_changed(make_market, pay_the_bid) -> None:
    market = make_market(["alpha"], mechanism=Halving())
    with pytest.raises(ValueError, match="read-only"):
        market.close_round({"alpha": pay_the_bid(market.open_round()["alpha"])})


def test_what_was_checked_is_paid_even_if_a_mechanism_forces_its_way(make_market, pay_the_bid) -> None:
    market = make_market(["alpha"], mechanism=Halving())
    market.mechanism.force = True
    report = market.close_round({"alpha": pay_the_bid(market.open_round()["alpha"])})
    assert [offer.paid for offer in report.offers] == [offer.bid for offer in report.offers] != []


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


# Rounds of several steps


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


@pytest.mark.parametrize(
    "state", [5, {"seen": {1, 2}}, {"price": float("nan")}, {1: "one"}], ids=["no dict", "no JSON", "NaN", "no text"]
)
@pytest.mark.parametrize("kind", ["mechanism", "behaviour"])
def test_a_state_that_cannot_be_stored_names_the_method(make_market, kind, state) -> None:
    class Odd(PayAsOffered if kind == "mechanism" else Truthful):  # type: ignore[misc]
        def state(self):
            return state

    market = make_market(["alpha"], **{kind: Odd()})
    market.open_round()
    market.close_round({"alpha": Offer.none()})
    expected = rf"^{kind} Odd\.state\(\) \({re.escape(__file__)}:\d+\) must return what JSON can store: "
    with pytest.raises((ClearingError, BehaviourError), match=expected):
        market.state()
