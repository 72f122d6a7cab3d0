"""An offer that breaks a rule is refused, never repaired; the round stays open as if nothing had been said."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from des.market import MarketError
from des.observation import Offer
from des.offer_checks import OfferError

NAN, INF = float("nan"), float("inf")

# Four clients who bid 2.1 each; a budget of 10. What is offered, whose fault it is, what is said.
BAD = {
    "no Offer": ([0, 1], None, "act() must return an Offer, not list"),
    "nothing": (None, None, "act() must return an Offer, not NoneType"),
    "two clients, a number": (Offer(np.array([0, 1]), np.array(2.1)), None, "not of shapes (2,) and ()"),
    "a table": (Offer(np.array([[0]]), np.array([[2.1]])), None, "not of shapes (1, 1) and (1, 1)"),
    "a number": (Offer(0, 2.1), None, "not of shapes () and ()"),
    "ragged lists": (Offer([[0], [1, 2]], [2.1, 2.1]), None, "clients and payments must be lists of the same length"),
    "clients as floats": (Offer(np.array([0.0]), np.array([2.1])), None, "whole numbers, not float64"),
    "clients as a mask": (Offer(np.array([True, False]), np.array([2.1, 2.1])), None, "whole numbers, not bool"),
    "payments as text": (Offer(np.array([0]), np.array(["2.1"])), None, "payments must be numbers, not <U3"),
    "payments as objects": (Offer(np.array([0]), np.array([None])), None, "payments must be numbers, not object"),
    "complex payments": (Offer(np.array([0]), np.array([2.1j])), None, "payments must be numbers, not complex128"),
    "masked payments": (Offer(np.array([0, 1]), np.ma.array([2.1, 2.1], mask=[0, 1])), None, "what masked ones hide"),
    "a client too many": (Offer(np.array([1, 4]), np.array([2.1, 2.1])), 4, "clients are 0 to 3"),
    "a negative client": (Offer(np.array([-1]), np.array([2.1])), -1, "clients are 0 to 3"),
    "a huge client": (Offer(np.array([2**63], dtype=np.uint64), np.array([2.1])), 2**63, "clients are 0 to 3"),
    "a client twice": (
        Offer(np.array([2, 1, 2]), np.array([2.1, 2.1, 2.1])),
        2,
        "a client can be offered only one payment",
    ),
    "NaN": (Offer(np.array([0, 3]), np.array([2.1, NAN])), 3, "not a finite number"),
    "infinity": (Offer(np.array([3]), np.array([INF])), 3, "not a finite number"),
    "minus infinity": (Offer(np.array([3]), np.array([-INF])), 3, "not a finite number"),
    "a negative payment": (Offer(np.array([3]), np.array([-2.1])), 3, "negative"),
    "an absurdly negative payment": (Offer(np.array([3]), np.array([-1e308])), 3, "negative"),
    "below the bid": (Offer(np.array([0, 2]), np.array([2.1, 2.09])), 2, "2.090000 is below the bid 2.100000 (eq. 5)"),
    "one alone over the budget": (Offer(np.array([1]), np.array([10.1])), 1, "over the budget of 10.000000 (eq. 4)"),
    "absurdly over the budget": (Offer(np.array([1]), np.array([1e308])), 1, "over the budget of 10.000000 (eq. 4)"),
    "together over the budget": (
        Offer(np.array([0, 1, 2]), np.array([3.0, 3.0, 4.000001])),
        None,
        "add up to 10.000001, over the budget of 10.000000 (eq. 4)",
    ),
}


@pytest.fixture
def two_services(make_market, plain_service):
    """alpha, whose policy is under test, and beta, with 4 clients. The first round is over."""
    alpha = replace(plain_service, name="alpha", policy="mine", budget=10_000_000)

    def market():
        fresh = make_market([alpha, "beta"], count=4)
        fresh.open_round()
        fresh.close_round({"alpha": Offer.none(), "beta": Offer.none()})
        return fresh

    return market


@pytest.mark.parametrize("why", BAD)
def test_a_bad_offer_is_named_and_leaves_the_round_as_it_was(two_services, make_offer, why: str) -> None:
    bad, client, said = BAD[why]
    good = {"alpha": make_offer((0, 2.1), (1, 2.5)), "beta": make_offer((0, 2.1))}
    market, untroubled = two_services(), two_services()
    market.open_round()
    untroubled.open_round()
    with pytest.raises(OfferError) as caught:
        market.close_round({**good, "alpha": bad})

    error = caught.value
    assert (error.policy, error.service, error.round, error.client) == ("mine", "alpha", 2, client)
    where = "round 2" if client is None else f"round 2, client {client}"
    assert str(error).startswith(f"policy 'mine' of service 'alpha', {where}: ")
    assert said in str(error)
    # The same offers as elsewhere then come to the same, to the last event and micro-unit.
    assert repr(market.close_round(good)) == repr(untroubled.close_round(good))
    assert market.ledger.accounts == untroubled.ledger.accounts


def test_the_fault_of_one_service_is_not_another_s(two_services, make_offer) -> None:
    market = two_services()
    market.open_round()
    with pytest.raises(OfferError, match="policy 'by hand' of service 'beta'"):
        market.close_round({"alpha": make_offer((0, 2.1)), "beta": make_offer((0, 1.0))})


@pytest.mark.parametrize(
    "fine",
    [
        Offer([0, 1], [2.1, 3]),  # lists
        Offer(np.array([0, 1], dtype=np.int8), np.array([3, 4])),  # whole payments
        Offer(np.array([0], dtype=np.uint64), np.array([2.5], dtype=np.float32)),
        Offer([], []),
        Offer(np.array([3, 0]), np.array([2.1, 2.1 - 4e-7])),  # the bid, to six decimals
    ],
)
def test_what_a_policy_may_also_write(two_services, fine: Offer) -> None:
    market = two_services()
    market.open_round()
    report = market.close_round({"alpha": fine, "beta": Offer.none()})
    assert [o.client for o in report.offers] == list(fine.clients)  # in the order in which the service chose


def test_a_policy_that_changes_its_offer_afterwards_changes_nothing(two_services, make_offer) -> None:
    market = two_services()
    market.open_round()
    offer = make_offer((0, 2.1))
    report = market.close_round({"alpha": offer, "beta": Offer.none()})
    offer.clients[0], offer.payments[0] = 3, 99.0
    assert (report.offers[0].client, report.offers[0].payment) == (0, 2_100_000)


def test_offers_are_due_from_exactly_those_who_take_part(two_services) -> None:
    market = two_services()
    market.open_round()
    for offers in ({}, {"alpha": Offer.none()}, dict.fromkeys(("alpha", "beta", "gamma"), Offer.none())):
        with pytest.raises(MarketError, match=r"offers must come from \['alpha', 'beta'\], not from \["):
            market.close_round(offers)
    market.close_round({"beta": Offer.none(), "alpha": Offer.none()})  # in any order


def test_the_error_travels_between_processes() -> None:
    error = OfferError("mine", "alpha", 2, 3, "the payment is not a finite number")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(copy), copy.client) == (str(error), 3)


@pytest.mark.parametrize(("clients", "payments", "counts"), [
    ([0, 1], [2.1], "not 1 payment for 2 clients"),
    ([0], [2.1, 2.1], "not 2 payments for 1 client"),
    ([], [2.1], "not 1 payment for 0 clients"),
])  # fmt: skip
def test_an_offer_with_more_of_one_than_of_the_other_is_refused_where_it_is_made(
    clients: list[int], payments: list[float], counts: str
) -> None:
    with pytest.raises(ValueError, match=f"^an offer has one payment for each client, {counts}$"):
        Offer(np.array(clients), np.array(payments))
