"""The base of screens that follow files of other programs: they look again and again, in a thread, at a pace."""

from time import perf_counter
from typing import Generic, TypeVar

from textual import work
from textual.screen import Screen
from textual.timer import Timer

INTERVAL, AT_REST = 0.5, 1.5  # seconds between two looks; where the last one found nothing new

# A look takes at most this part of the time: one that takes long, on a slow disk, comes less often. What counts is the
# faster of the last two: one that reads everything, or imports what it needs, says nothing about the next one.
SHARE = 20

Seen = TypeVar("Seen")


class FollowingScreen(Screen[None], Generic[Seen]):
    """Looks at files while it is shown, one look at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._looking = False
        self._took = 0.0  # seconds that the last look took; nothing before the first
        self._seen: Seen | None = None

    def see(self) -> Seen:
        """Look at the files; return what differs where they do. Called in a thread: their disk may be slow."""
        raise NotImplementedError

    def take(self, seen: Seen) -> None:
        raise NotImplementedError

    def draw(self) -> None:
        """Show what was seen last."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.draw())
        self._look_again()

    def on_screen_suspend(self) -> None:
        self._rest()

    def on_screen_resume(self) -> None:
        if self.is_mounted:
            self._look_again()

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _look_again(self) -> None:
        """Look, unless a look is under way: the screen may have gone and come back during one."""
        self._rest()
        if not self._looking:
            self._looking = True
            self._look()

    @work(thread=True, group="look")
    def _look(self) -> None:
        began = perf_counter()
        seen = self.see()
        self.app.call_from_thread(self._looked, seen, perf_counter() - began)

    def _looked(self, seen: Seen, took: float) -> None:
        self._looking = False
        self._took, faster = took, min(took, self._took)
        pause = AT_REST if seen == self._seen else INTERVAL
        self._seen = seen
        self.take(seen)
        if not self.is_mounted:
            return
        self.draw()
        if self.is_current:
            self._timer = self.set_timer(max(pause, SHARE * faster), self._look_again)
