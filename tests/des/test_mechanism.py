"""The seam at which a round is cleared: what the paper's mechanism does, what another may do, and what none may."""

import numpy as np
import pytest

from des.allocation import NO_CORE, allocate
from des.log_records import Kind
from des.mechanism import Clearing, ClearingError, Mechanism

WANTED = {"alpha": (0, 6.0), "beta": (0, 5.0), "gamma": (0, 4.0)}


class HighestLosingOffer(Mechanism):
    """A client's winners pay its highest losing offer, at least the bid."""

    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        price = book.bids.copy()
        lost = core == NO_CORE
        for client in np.unique(book.clients[lost]):
            own = book.clients == client
            price[own] = np.maximum(price[own], book.payments[own & lost].max())
        return Clearing(core, price)


def play(make_market, make_offer, mechanism, *, cores=1, wanted=WANTED):
    market = make_market(list(wanted), cores=cores, mechanism=mechanism)
    market.open_round()
    return market, market.close_round({name: make_offer(one) for name, one in wanted.items()})


def test_a_mechanism_can_ask_less_than_was_offered(make_market, make_offer) -> None:
    """Price and offer are two things in every record, and the difference lapses with the rest of the budget."""
    market, report = play(make_market, make_offer, HighestLosingOffer(), cores=2)
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


class Halving(HighestLosingOffer):
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
