"""One budget for all services of a round: who may be charged what, and where the money comes from."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from des.allocation import NO_CORE, allocate
from des.ledger import Ledger, LedgerError
from des.log_records import Outcome
from des.mechanism import Clearing, ClearingError, Mechanism


class Pooled(Mechanism):
    """Takes all offers as they fit into the sum of budgets, at what they pay."""

    platform_budget = True
    limit = True

    def clear(self, book):
        fits = np.cumsum(book.payments) <= book.budgets.sum() if self.limit else book.payments >= 0
        core = np.full(len(fits), NO_CORE)
        core[fits] = allocate(book.services[fits], book.clients[fits], book.payments[fits], book.cores, book.tie_order)
        self.budgets = book.budgets.tolist()
        return Clearing(core, book.payments)


@pytest.fixture
def services(plain_service) -> list[Any]:
    """Alpha has 3, beta 7 and gamma 2 in each round."""
    return [
        replace(plain_service, name=name, budget=budget * 1_000_000)
        for name, budget in (("alpha", 3), ("beta", 7), ("gamma", 2))
    ]


def test_a_service_may_be_charged_more_than_its_budget_while_all_together_are_not(
    make_market, make_offer, services
) -> None:
    """Alpha is charged 4 + 4 = 8 and gamma 3.5 of the 12 that all have; beta brings 7, and 0.5 lapses."""
    market = make_market(services, mechanism=Pooled())
    observed = market.open_round()
    assert all(observation.offer_limit == float("inf") for observation in observed.values())
    report = market.close_round(
        {"alpha": make_offer((0, 4.0), (1, 4.0)), "beta": make_offer(), "gamma": make_offer((2, 3.5))}
    )
    assert [it.spent for it in report.services] == [8_000_000, 0, 3_500_000]
    assert market.ledger.income == [4_000_000, 4_000_000, 3_500_000]
    accounts = market.ledger.accounts.values()
    assert [account.paid for account in accounts] == [8_000_000, 0, 3_500_000]
    assert sum(account.granted for account in accounts) == 12_000_000
    assert sum(account.lapsed for account in accounts) == 500_000


def test_money_of_a_service_that_has_left_is_not_there(make_market, make_offer, services, stub_federation) -> None:
    mechanism = Pooled()
    services[1] = replace(services[1], target_accuracy=0.01)
    market = make_market(services, mechanism=mechanism)
    market.open_round()
    market.close_round({"alpha": make_offer(), "beta": make_offer((0, 2.5)), "gamma": make_offer()})
    assert mechanism.budgets == [3_000_000, 7_000_000, 2_000_000]
    market.open_round()
    market.close_round({"alpha": make_offer((0, 4.0)), "gamma": make_offer((1, 2.1))})
    assert mechanism.budgets == [3_000_000, 0, 2_000_000]
    assert market.ledger.accounts["alpha"].paid == 4_000_000
    assert market.ledger.accounts["gamma"].paid == 0


def test_no_clearing_is_over_the_platforms_budget(make_market, make_offer, services) -> None:
    mechanism = Pooled()
    mechanism.limit = False
    market = make_market(services, mechanism=mechanism)
    market.open_round()
    with pytest.raises(ClearingError, match=r"services would pay 12.000001, over the platform's budget of 12.000000$"):
        market.close_round(
            {"alpha": make_offer((0, 6.0)), "beta": make_offer((1, 3.0)), "gamma": make_offer((2, 3.000001))}
        )


@pytest.mark.parametrize("extra", [0, 1])
def test_no_settlement_is_over_what_the_service_was_cleared_for(make_market, make_offer, services, extra) -> None:
    """The bids are 2.1: of alpha's offers of 4 and 5, 2.5 each were cleared, and 2 x 2.5 may be settled otherwise."""

    class Settling(Pooled):
        def clear(self, book):
            return Clearing(super().clear(book).core, np.full(len(book.clients), 2_500_000))

        def settle(self, book, clearing, deliveries):
            return np.array([2_100_000, 2_900_000 + extra])

    market = make_market(services, mechanism=Settling())
    market.open_round()
    offers = {"alpha": make_offer((0, 4.0), (1, 5.0)), "beta": make_offer(), "gamma": make_offer()}
    if extra:
        with pytest.raises(ClearingError, match=r"service 0 would pay 5.000001, over its budget of 5.000000 \(eq. 4\)"):
            market.close_round(offers)
    else:
        assert [row.paid for row in market.close_round(offers).offers] == [2_100_000, 2_900_000]


@pytest.mark.parametrize("seed", range(8))
def test_money_is_conserved_and_all_payments_are_within_the_sum_of_budgets(
    make_market, make_offer, services, seed
) -> None:
    rng = np.random.default_rng(seed)
    market = make_market(services, mechanism=Pooled(), departure_rate=0.3, cores=2, rounds=6, count=5)
    over = 0
    for number in range(1, 7):
        market.open_round()
        wanted = {spec.name: rng.permutation(5)[: rng.integers(6)].tolist() for spec in services}
        report = market.close_round(  # which checks that every micro-unit is accounted for
            {name: make_offer(*((c, float(rng.uniform(2.2, 6.6))) for c in who)) for name, who in wanted.items()}
        )
        paid = [it.spent for it in report.services]
        assert sum(paid) <= 12_000_000
        over += any(spent > spec.budget for spent, spec in zip(paid, services, strict=True))
        assert sum(market.ledger.income) == sum(account.paid for account in market.ledger.accounts.values())
        assert sum(account.granted for account in market.ledger.accounts.values()) == number * 12_000_000
        assert all(row.paid == row.payment for row in report.offers if row.outcome is Outcome.SERVED)
    assert over


def test_a_ledger_pools_what_is_held_and_no_more() -> None:
    ledger = Ledger(["a", "b", "c"], 1)
    for name, budget in (("a", 5), ("b", 1), ("c", 4)):
        ledger.grant(name, budget)
        ledger.hold(name, budget)
    ledger.pool({"a": 2, "b": 6, "c": 1})
    assert {name: account.held for name, account in ledger.accounts.items()} == {"a": 2, "b": 6, "c": 2}
    ledger.check()
    with pytest.raises(LedgerError, match=r"b: needs 0.000009, more than all services hold"):
        ledger.pool({"a": 2, "b": 9, "c": 0})
