"""Changes in the middle of a market: conditions from outside, and who decides for a service."""

import pytest

from des.log_records import Outcome
from des.market import MarketError
from des.mechanism import ClearingError
from des.observation import Offer
from des.schedule import Availability, Change, Conditions, Schedule


def outcomes(market, offers) -> list[Outcome]:
    market.open_round()
    return [offer.outcome for offer in market.close_round(offers).offers]


def test_a_change_holds_from_its_round_on(make_market, make_offer) -> None:
    """One core serves one of two services, two cores both; a budget of 2 is below every bid of 2.1."""
    changes = [
        Change(4, budgets={"alpha": 2_000_000}, offline=frozenset({1})),
        Change(2, cores=2),  # in any order
        Change(5, offline=frozenset()),
    ]
    market = make_market(["alpha", "beta"], rounds=5, interventions=changes)
    both = {"alpha": make_offer((0, 2.5)), "beta": make_offer((0, 2.1))}
    assert outcomes(market, both) == [Outcome.SERVED, Outcome.OUTBID]
    assert outcomes(market, both) == [Outcome.SERVED, Outcome.SERVED]
    assert outcomes(market, both) == [Outcome.SERVED, Outcome.SERVED]
    seen = market.open_round()
    assert (seen["alpha"].budget, seen["beta"].budget, seen["alpha"].cores) == (2.0, 20.0, 2)
    assert seen["alpha"].available.tolist() == [True, False, True]
    market.close_round({"alpha": Offer.none(), "beta": both["beta"]})
    seen = market.open_round()
    assert (seen["alpha"].budget, seen["alpha"].available.all()) == (2.0, True)


def test_conditions_depend_on_the_round_alone() -> None:
    first = Conditions({"alpha": 1, "beta": 2}, cores=1)
    changes = [Change(3, cores=4), Change(2, budgets={"beta": 5}, offline=frozenset({7}))]
    schedule = Schedule(first, changes)
    assert schedule.at(1) == first
    assert schedule.at(2) == Conditions({"alpha": 1, "beta": 5}, 1, frozenset({7}))
    assert schedule.at(3) == schedule.at(9) == Conditions({"alpha": 1, "beta": 5}, 4, frozenset({7}))


def test_another_mechanism_clears_from_its_round_on_and_begins_fresh(make_market) -> None:
    """A posted price that rises or falls with demand is the first one again in each market that comes to the round."""
    posted = "posted-price", {"price_per_sample": 0.5}
    changes = [Change(2, rules=posted), Change(4, rules=("uniform-price", {}))]
    market = make_market(["alpha", "beta"], rounds=5, interventions=changes)
    cleared, states = [], []
    while not market.finished:
        market.open_round()
        cleared.append(type(market.mechanism).__name__)
        market.close_round({"alpha": Offer.none(), "beta": Offer.none()})
        states.append(market.state())
    assert cleared == ["PayAsOffered", "PostedPrice", "PostedPrice", "UniformPrice", "UniformPrice"]
    assert [bool(state["mechanism"]) for state in states] == [False, True, True, False, False]
    again = make_market(["alpha", "beta"], rounds=5, interventions=changes)
    again.restore(states[1])
    assert (type(again.mechanism).__name__, again.state()) == ("PostedPrice", states[1])


def test_a_mechanism_that_cannot_be_created_in_its_round_is_named(make_market) -> None:
    market = make_market(["alpha"], rounds=2, interventions=[Change(1, rules=("posted-price", {"prise": 1}))])
    with pytest.raises(ClearingError, match=r"^mechanism 'posted-price' takes no option 'prise'"):
        market.open_round()


def test_another_policy_takes_the_seat_of_a_service_between_rounds(make_market) -> None:
    market = make_market(["alpha", "beta"])
    market.seat("beta", "newcomer", privileged=True)
    assert [(spec.policy, spec.privileged) for spec in market.services] == [("by hand", False), ("newcomer", True)]
    seen = market.open_round()
    assert (seen["alpha"].privileged, seen["beta"].privileged is None) == (None, False)
    with pytest.raises(MarketError, match=r"^round 1 is still open$"):
        market.seat("alpha", "newcomer", privileged=False)
    market.close_round({"alpha": Offer.none(), "beta": Offer.none()})
    with pytest.raises(MarketError, match=r"^unknown service 'gamma'; choose from alpha, beta$"):
        market.seat("gamma", "newcomer", privileged=False)


def test_a_client_is_there_from_the_first_to_the_last_round_of_each_interval() -> None:
    there = Availability(3, [(0, 2, 4), (2, 1, 1), (2, 4, 9)])
    assert [sorted(there.offline(n)) for n in range(1, 6)] == [[0, 1], [1, 2], [1, 2], [1], [0, 1]]
