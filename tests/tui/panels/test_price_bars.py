"""The bars of the order book: everything on one axis, and told apart without colour."""

from rich.style import Style

from des.money import MICRO
from tui.panels.price_bars import BID, REFUSED, SERVED, PriceAxis, Rival
from tui.style.colors import sign

AXIS = PriceAxis(10 * MICRO, 41)  # a quarter of a unit to a cell


def bar(bid: float, offer: float | None, *rivals: tuple[int, float, bool], served: bool = False) -> str:
    paid = [Rival(service, round(payment * MICRO), won) for service, payment, won in rivals]
    micro = None if offer is None else round(offer * MICRO)
    return AXIS.bar(round(bid * MICRO), micro, 0, paid, served=served, asked=Style()).plain


def test_bars_ticks_bids_and_rivals_stand_at_their_prices() -> None:
    assert AXIS.ticks().split() == ["0", "2", "4", "6", "8", "10"]
    for number in (2, 4, 6, 8):
        assert AXIS.ticks().index(str(number)) == AXIS.cell(number * MICRO) == 4 * number
    line = bar(2, 4, (1, 3, False), (2, 10, True), served=True)
    assert len(line) == 41
    assert [line.index(mark) for mark in (BID, sign(1), sign(2))] == [8, 12, 40]
    assert set(line[:17]) - {BID, sign(1)} == {SERVED}
    assert set(line[17:40]) == {" "}


def test_an_offer_that_was_not_served_is_broken_and_a_bid_without_one_stands_alone() -> None:
    assert set(bar(2, 4)) == {REFUSED, BID, " "}
    assert bar(2, None).split() == [BID]


def test_marks_at_one_price_stand_beside_each_other() -> None:
    assert bar(5, 5, (1, 5, True), (2, 5, False)).rstrip()[20:] == BID + sign(1) + sign(2)
