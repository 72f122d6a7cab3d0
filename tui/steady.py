"""An app that outlives its screens: an exception in one of them ends that screen, not what goes on beside it."""

import time
from typing import Any
from weakref import WeakSet

from rich.text import Text
from textual._context import active_message_pump
from textual.app import App
from textual.dom import NoScreen
from textual.events import InputEvent
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import WorkerFailed

from fl.crash import crash_line

AT_ONCE = 5.0
"""Seconds. A new home screen that fails sooner cannot be helped."""


class SteadyApp(App[None]):
    """Reports an exception in the line of a crash report, and drops the screen it came from if something is live.

    Attributes:
        crashed: whether an exception has ended the app.
    """

    def __init__(self) -> None:
        super().__init__()
        self.crashed = False
        self._ending = False
        self._dropped: WeakSet[Screen[Any]] = WeakSet()
        self._renewed = float("-inf")

    def is_live(self) -> bool:
        """Return whether something would be lost if the app ended now."""
        return False

    async def _dispatch_message(self, message: Message) -> None:
        # Textual runs the actions of keys here, and leaves the app's message loop after an exception.
        if isinstance(message, InputEvent) and not self.screen_stack:
            return  # a key that was pressed while the app was ending
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not (isinstance(message, InputEvent) and self._outlives(error)):
                self._ending = True
                raise

    def _handle_exception(self, error: Exception) -> None:
        """Drop the screen that has failed, or else end the app. Textual would print the values of all variables."""
        if not self._ending and self._outlives(error):
            return
        self.crashed = True
        line = Text(_line(error))
        error.__rich__ = lambda: line  # type: ignore[attr-defined]
        super()._handle_exception(error)

    def _outlives(self, error: Exception) -> bool:
        """Report an exception in a screen and drop that screen; return whether that can be done."""
        if not self.is_running or not self.is_live():
            return False
        pump = active_message_pump.get(self)
        screen: Screen[Any] | None = self.screen
        if isinstance(pump, Widget):
            try:
                screen = pump.screen
            except NoScreen:
                screen = None
        if screen in self._dropped:
            return True  # and goes on failing until it is gone
        works = isinstance(error, WorkerFailed) or (pump is self and screen is self.screen_stack[0])
        if not works and screen is not None and screen in self.screen_stack and not self._drop(screen):
            return False
        self.notify(_line(error), title="A screen has failed; the runs continue", severity="error", timeout=30)
        return True

    def _drop(self, screen: Screen[Any]) -> bool:
        """Remove a screen and those on top of it; return whether that leaves a screen that works."""
        if screen is self.screen_stack[0] and time.monotonic() - self._renewed < AT_ONCE:
            return False
        self._dropped.add(screen)
        while len(self.screen_stack) > 1 and screen in self.screen_stack:
            self.pop_screen()
        if screen in self.screen_stack:
            self._renewed = time.monotonic()
            screen._push_result_callback(self, None)  # Textual gives none to the default screen, and takes one away
            self.switch_screen(self.get_default_screen())
        return True


def _line(error: Exception) -> str:
    cause = getattr(error, "error", error)  # a worker's failure holds what it failed with
    return crash_line(cause if isinstance(cause, BaseException) else error)
