"""Redraws coalesce. Time is a number here: no assertion depends on how fast the machine is."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tui.app import MarketApp
from tui.style import redraw
from tui.style.redraw import RATE, REST, Redraw


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
    screen = Redraw(clock, lambda: drawn.append((clock.now, asked[0])))  # type: ignore[arg-type]
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
    screen = Redraw(clock, lambda: drawn.append(clock.now))  # type: ignore[arg-type]
    screen.request()
    clock.move(5)
    screen.request()
    assert drawn == [100.0, 105.0]


def test_the_pause_follows_what_a_paint_costs(clock: Clock) -> None:
    drawn: list[float] = []
    screen = Redraw(clock, lambda: drawn.append(clock.now))  # type: ignore[arg-type]
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
