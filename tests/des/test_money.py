"""Money is exact: whole micro-units, rounded half to even, six decimals in logs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.ledger import Ledger, LedgerError
from des.money import MICRO, part_of, text, to_micro


@given(st.integers(0, 10**15), st.integers(0, MICRO))
def test_a_part_of_an_amount_is_exact_where_their_product_is_not(amount: int, part: int) -> None:
    assert part_of(np.array([amount]), np.array([part])).tolist() == [amount * part // MICRO]


@pytest.mark.parametrize(
    ("amount", "micro"),
    [
        (0.0, 0),
        (2.1, 2_100_000),
        (0.025 * 100 - 0.4, 2_100_000),  # 2.0999999999999996 in floating point
        (0.0000005, 0),  # half a micro-unit: to the even neighbour, down ...
        (0.0000015, 2),  # ... and up
        (0.0000025, 2),
        (-1.5, -1_500_000),
        (20, 20_000_000),
    ],
)
def test_amounts_are_rounded_half_even_to_micro_units(amount: float, micro: int) -> None:
    assert to_micro(amount) == micro
    assert isinstance(to_micro(amount), int)
    assert to_micro(np.array([amount], dtype=np.float64)).tolist() == [micro]  # a number alone and in an array: alike


@given(st.integers(-(10**12), 10**12))
def test_six_decimals_carry_every_micro_unit(micro: int) -> None:
    assert to_micro(float(text(micro))) == micro
    assert len(text(micro).partition(".")[2]) == 6


def test_a_service_s_round_in_the_ledger() -> None:
    ledger = Ledger(["alpha", "beta"], clients=2)
    ledger.grant("alpha", 20)
    ledger.hold("alpha", 12)
    ledger.pay("alpha", 1, 5)
    ledger.lapse("alpha")
    alpha = ledger.accounts["alpha"]
    assert (alpha.granted, alpha.paid, alpha.lapsed, alpha.free, alpha.held) == (20, 5, 15, 0, 0)
    assert ledger.income == [0, 5]
    assert ledger.accounts["beta"].granted == 0
    ledger.check()


def test_the_ledger_refuses_to_create_or_overdraw_money() -> None:
    ledger = Ledger(["alpha"], clients=1)
    with pytest.raises(LedgerError, match=r"alpha: a budget of -0\.000001 is negative"):
        ledger.grant("alpha", -1)
    ledger.grant("alpha", 10)
    with pytest.raises(LedgerError, match="has not lapsed"):
        ledger.grant("alpha", 10)
    with pytest.raises(LedgerError, match=r"offers of 0\.000011 with 0\.000010 free"):
        ledger.hold("alpha", 11)
    ledger.hold("alpha", 4)
    for amount in (5, -1):
        with pytest.raises(LedgerError, match="a payment of"):
            ledger.pay("alpha", 0, amount)
    ledger.check()


@pytest.mark.parametrize("account", ["granted", "paid", "lapsed", "held"])
def test_the_ledger_notices_a_lost_micro_unit(account: str) -> None:
    ledger = Ledger(["alpha"], clients=1)
    ledger.grant("alpha", 10)
    setattr(ledger.accounts["alpha"], account, getattr(ledger.accounts["alpha"], account) + 1)
    with pytest.raises(LedgerError, match="does not add up"):
        ledger.check()


def test_the_ledger_notices_money_that_reached_the_wrong_purse() -> None:
    ledger = Ledger(["alpha"], clients=1)
    ledger.grant("alpha", 10)
    ledger.income[0] += 1
    with pytest.raises(LedgerError, match="clients did not receive the sum that services paid"):
        ledger.check()


def test_a_budget_for_the_whole_run_is_what_is_left_of_it() -> None:
    ledger = Ledger(["alpha", "beta"], clients=1, totals={"alpha": 15})
    assert (ledger.left("alpha"), ledger.left("beta")) == (15, None)
    ledger.grant("alpha", 10)
    ledger.hold("alpha", 8)
    ledger.pay("alpha", 0, 6)
    ledger.lapse("alpha")  # what was not paid is not lost to later rounds
    assert ledger.left("alpha") == 9
    with pytest.raises(LedgerError, match=r"alpha: a budget of 0\.000010 with 0\.000009 left for the whole run"):
        ledger.grant("alpha", 10)
    ledger.grant("alpha", 9)
    ledger.check()
    ledger.totals["alpha"] = 5
    with pytest.raises(LedgerError, match="alpha: paid more than its budget for the whole run"):
        ledger.check()
