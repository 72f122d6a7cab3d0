"""Redraws that coalesce: however often something changes, the screen redraws at most ``RATE`` times per second."""

from collections.abc import Callable
from time import monotonic

from textual.message_pump import MessagePump
from textual.timer import Timer

RATE = 15.0


class Redraw:
    """Redraws soon after a request, but not too often."""

    def __init__(self, owner: MessagePump, draw: Callable[[], None], rate: float = RATE) -> None:
        self._owner, self._draw, self._pause = owner, draw, 1 / rate
        self._last = 0.0
        self._timer: Timer | None = None

    def request(self) -> None:
        """Ask for a redraw."""
        if self._timer is None:
            wait = self._last + self._pause - monotonic()
            if wait <= 0:
                self.now()
            else:
                self._timer = self._owner.set_timer(wait, self.now)

    def now(self) -> None:
        """Draw."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._draw()
        self._last = monotonic()
