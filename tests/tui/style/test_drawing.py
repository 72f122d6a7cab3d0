"""How screens are drawn: redraws coalesce, columns and words fit, bars stand at their prices. Time is a number here."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from des.money import MICRO
from scenarios.logs.run_state import RunState
from tui.app import MarketApp
from tui.panels.price_bars import BID, NONE, REFUSED, SERVED, PriceAxis, Rival
from tui.panels.services import ServicesTable
from tui.style import redraw
from tui.style.colors import sign, signed
from tui.style.formats import GAP, TableColumn, fit, laid_out, wrapped
from tui.style.redraw import MOST_REST, RATE, REST, Redraw


class Clock:
    """A clock that stands still until it is moved, with the timers that are set by it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.paint = 0.0  # seconds that it takes until what was drawn is on the screen
        self._timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, call: Callable[..., None], *given: Any) -> Any:
        timer = self.now + delay, lambda: call(*given)
        self._timers.append(timer)

        class Handle:
            cancel = staticmethod(lambda: self._timers.remove(timer) if timer in self._timers else None)

        return Handle

    def call_next(self, callback: Callable[[], None]) -> None:
        callback()

    def call_after_refresh(self, callback: Callable[[float], None], began: float) -> None:
        self.now += self.paint
        callback(began)

    def move(self, seconds: float) -> None:
        end = self.now + seconds
        while due := sorted((at, i) for i, (at, _) in enumerate(self._timers) if at <= end):
            at, i = due[0]
            self.now = at
            self._timers.pop(i)[1]()
        self.now = end


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(redraw, "monotonic", lambda: clock.now)
    monkeypatch.setattr(redraw, "get_running_loop", lambda: clock)
    return clock


def test_a_flood_of_requests_draws_at_the_rate_and_ends_with_the_newest(clock: Clock) -> None:
    asked, drawn = [0], []
    screen = Redraw(clock, lambda: drawn.append((clock.now, asked[0])))
    for number in range(1, 3001):
        asked[0] = number
        screen.request()
        clock.move(0.001)
    clock.move(1)
    assert drawn[0] == (100.0, 1)
    assert drawn[-1][1] == 3000
    assert len(drawn) <= 3 * RATE + 2
    assert min(b - a for (a, _), (b, _) in pairwise(drawn)) > 0.99 / RATE


def test_a_single_request_draws_at_once(clock: Clock) -> None:
    drawn: list[float] = []
    screen = Redraw(clock, lambda: drawn.append(clock.now))
    screen.request()
    clock.move(5)
    screen.request()
    assert drawn == [100.0, 105.0]


def test_a_view_that_takes_long_to_draw_never_stands_still_for_a_second_more(clock: Clock) -> None:
    drawn: list[float] = []
    screen = Redraw(clock, lambda: drawn.append(clock.now))
    clock.paint = 1.5  # of 10,000 clients and 50 services
    for _ in range(1000):
        screen.request()
        clock.move(0.01)
    assert len(drawn) > 3
    assert max(b - a for a, b in pairwise(drawn)) <= 1.5 + MOST_REST + 0.011 < 1.5 + 1


def test_the_pause_follows_what_a_paint_costs(clock: Clock) -> None:
    drawn: list[float] = []
    screen = Redraw(clock, lambda: drawn.append(clock.now))
    clock.paint = 0.2
    for _ in range(1000):
        screen.request()
        clock.move(0.01)
    # A third of the time at most is spent on drawing.
    assert min(b - a for a, b in pairwise(drawn)) >= 0.2 + REST * 0.2 - 1e-9
    clock.paint = 0.0
    slow = len(drawn)
    clock.move(1)
    for _ in range(1000):
        screen.request()
        clock.move(0.01)
    assert len(drawn) - slow > 5 * slow


async def test_a_redraw_that_is_due_at_once_is_not_lost(app: MarketApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer of Textual's is, if on a busy machine its time has come before it has begun."""
    monkeypatch.setattr(redraw, "monotonic", lambda: 100.0)
    drawn: list[int] = []
    async with app.run_test() as pilot:
        screen = Redraw(app.screen, lambda: drawn.append(1))
        screen._next = 100.0 + 1e-9
        screen.request()
        await pilot.pause()
    assert drawn


WIDTHS = st.lists(st.tuples(st.integers(1, 64), st.integers(0, 20)), min_size=1, max_size=12)
SERVICES = {"service": 9, "status": 10, "accuracy": 21, "spent": 19, "served": 6, "refused": 7, "markup": 7}
SERVICES |= {"sign": 1, "left": 8, "reward": 6, "policy": 13, "dataset": 9}


def total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)


@given(sizes=WIDTHS, room=st.integers(1, 250), data=st.data())
def test_columns_fit_and_leave_in_written_order(sizes: list[tuple[int, int]], room: int, data: st.DataObject) -> None:
    turns = data.draw(st.permutations(range(len(sizes))))  # 0 is the column that always stays
    columns = [TableColumn(str(i), "", leaves=turns[i], least=least) for i, (_, least) in enumerate(sizes)]
    wanted = {str(i): width for i, (width, _) in enumerate(sizes)}
    widths = laid_out(columns, wanted, room)
    assert total(widths) <= max(room, 1)
    assert all(1 <= width <= wanted[key] for key, width in widths.items())
    assert list(widths) == [column.key for column in columns if column.key in widths]
    gone = [column.leaves for column in columns if column.key not in widths]
    assert sorted(gone) == list(range(1, len(gone) + 1))
    if total(wanted) <= room:
        assert widths == wanted


@given(room=st.integers(40, 250))
def test_more_room_never_takes_a_column_away(room: int) -> None:
    assert set(laid_out(ServicesTable.COLUMNS, SERVICES, room)) <= set(
        laid_out(ServicesTable.COLUMNS, SERVICES, room + 1)
    )


def test_services_lose_the_data_set_first_and_then_policy_and_reward() -> None:
    gone = {
        room: set(SERVICES) - set(laid_out(ServicesTable.COLUMNS, SERVICES, room))
        for room in (138, 135, 120, 107, 97, 90)
    }
    assert gone == {
        138: set(),
        135: {"dataset"},
        120: {"dataset", "policy"},
        107: {"dataset", "policy", "reward"},
        97: {"dataset", "policy", "reward", "left"},
        90: {"dataset", "policy", "reward", "left", "markup"},
    }


def test_a_long_name_is_cut_before_a_column_leaves() -> None:
    wanted = SERVICES | {"service": 64}
    assert laid_out(ServicesTable.COLUMNS, wanted, 150)["service"] < 64
    assert set(laid_out(ServicesTable.COLUMNS, wanted, 150)) == set(wanted)


@given(words=st.lists(st.text("abcdefghij", min_size=1, max_size=12), min_size=1), width=st.integers(1, 40))
def test_words_are_wrapped_without_a_loss_and_broken_only_if_longer_than_a_line(words: list[str], width: int) -> None:
    lines = list(wrapped(" ".join(words), width))
    assert all(0 < len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(words)
    if max(map(len, words)) <= width:
        assert " ".join(line.rstrip() for line in lines) == " ".join(words)


@given(words=st.text("ab 日本語", min_size=1), width=st.integers(-2, 12))
def test_wide_letters_take_two_cells_and_no_room_ends_too(words: str, width: int) -> None:
    assert cell_len(fit(words, width)) == max(0, width)
    lines = list(wrapped(words, width))
    assert all(cell_len(line) <= max(0, width) or len(line) == 1 for line in lines)
    assert "".join(lines).replace(" ", "") == words.replace(" ", "")


def test_a_text_in_no_room_is_nothing() -> None:
    assert [fit("digits", width) for width in (0, 1, 3, 6, 8)] == ["", "…", "di…", "digits", "digits  "]


def test_each_state_has_a_sign() -> None:
    assert all(signed(state)[1:] == f" {state}" for state in RunState)


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


def test_an_offer_that_was_not_served_is_broken_and_dots_lead_to_a_bid_without_one() -> None:
    assert set(bar(2, 4)) == {REFUSED, BID, " "}
    assert bar(2, None).split() == [NONE * 8 + BID]


@pytest.mark.parametrize("price", [0.01, 5, 9.99])  # also where there is no room on one side
def test_equal_prices_are_joined_and_others_in_the_same_cell_stand_in_their_order(price: float) -> None:
    def drawn(*offers: float, bid: float = price) -> str:
        rivals = [(place, offer, False) for place, offer in enumerate(offers, 1)]
        return bar(bid, price, *rivals, served=True).strip().lstrip(SERVED)

    assert drawn(price, price) == f"{BID}={sign(1)}={sign(2)}"
    assert drawn(price + 0.001) == f"{BID}{sign(1)}"
    assert drawn(price - 0.001, price) == f"{sign(1)}{BID}={sign(2)}"
    assert drawn(price, bid=price - 0.001) == f"{BID}{SERVED}={sign(1)}"  # what it pays is more than the bid


@given(
    st.integers(0, 10 * MICRO),
    st.none() | st.integers(0, 10 * MICRO),
    st.lists(st.integers(0, 10 * MICRO), max_size=6),
)
def test_marks_read_from_left_to_right_as_prices_rise(bid: int, offer: int | None, rivals: list[int]) -> None:
    paid = [Rival(place, payment, served=False) for place, payment in enumerate(rivals, 1)]
    line = AXIS.bar(bid, offer, 0, paid, served=True, asked=Style()).plain
    price = {BID: bid} | {sign(rival.service): rival.payment for rival in paid}
    marks = [character for character in line if character in price]
    assert sorted(marks) == sorted(price)
    assert [price[mark] for mark in marks] == sorted(price.values())
    for one, other in pairwise(marks):
        joined = line[line.index(one) + 1 : line.index(other)] == "="
        assert joined == (price[one] == price[other])
