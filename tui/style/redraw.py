"""Redraws that coalesce, so that most of the time is left to keys, and results of threads, the newest alone."""

from asyncio import Event, TimerHandle, get_running_loop
from collections.abc import Callable
from time import monotonic
from typing import Any

from textual.app import App
from textual.message_pump import MessagePump
from textual.worker import get_current_worker

RATE = 15.0  # redraws per second at most

REST = 2.0  # the pause after a redraw, in times what it took to draw and paint: two thirds of the time are left to keys
MOST_REST = 0.4  # seconds of that pause at most: a live view of a large market must not stand still


class Redraw:
    """Redraws soon after a request, but not too often."""

    def __init__(self, owner: MessagePump, draw: Callable[[], None], rate: float = RATE) -> None:
        self._owner, self._draw, self._least = owner, draw, 1 / rate
        self._next = 0.0
        self._timer: TimerHandle | None = None

    def request(self) -> None:
        if self._timer is None:
            wait = self._next - monotonic()
            if wait <= 0:
                self.now()
            else:
                # Not a timer of Textual's, which never calls what is due before the timer has begun.
                self._timer = get_running_loop().call_later(wait, self._owner.call_next, self.now)

    def now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        began = monotonic()
        self._draw()
        self._next = monotonic() + self._least
        self._owner.call_after_refresh(self._painted, began)

    def _painted(self, began: float) -> None:
        """Let the pause follow what the redraw took, now that it is on the screen."""
        now = monotonic()
        self._next = max(self._next, now + min(MOST_REST, REST * (now - began)))


async def painted(screen: MessagePump) -> None:
    """Wait until everything that was asked for has been painted."""
    for _ in range(2):  # what a first painting asks for is painted by the second
        done = Event()
        screen.call_after_refresh(done.set)
        await done.wait()


def hand_over(app: App[Any], take: Callable[..., None], *results: object) -> None:
    """Give what a worker thread has found to its screen, unless a newer one of its exclusive group has begun.

    A thread that is cancelled runs on, and one that was begun earlier may end later.
    """
    worker = get_current_worker()

    def unless_outdated() -> None:  # asked in the app's own thread, in which newer ones begin
        if not worker.is_cancelled:
            take(*results)

    app.call_from_thread(unless_outdated)
