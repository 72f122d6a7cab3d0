"""All that overrides or calls private names of Textual, with why; seen with Textual 8.2.8.

tests/tui/test_textual_internals.py fails for what a later Textual makes needless.
"""

import asyncio
import codecs
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from traceback import walk_tb
from typing import Any, Literal, TypeVar

from rich.text import Text
from textual._callback import invoke
from textual._context import active_app
from textual.app import App
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.drivers import linux_driver
from textual.events import Click, Event, InputEvent, Key, MouseMove, Paste
from textual.geometry import Size
from textual.keys import _character_to_key as character_to_key
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import MountError, Widget
from textual.widgets import OptionList, SelectionList

from flmarket.core.crash import defect

__all__ = [
    "SteadyApp",
    "Value",
    "WideGutterList",
    "active_app",
    "character_to_key",
    "is_going",
    "is_removed",
    "lines_of",
    "set_virtual_size",
]

PATIENCE = 10.0  # seconds after which a key no longer waits for the one before: something is stuck

# Textual fails on input that is not UTF-8; its decoder is the only place where such bytes can be ignored.
_LENIENT = partial(codecs.getincrementaldecoder("utf-8"), "ignore")
linux_driver.getincrementaldecoder = lambda _: _LENIENT  # type: ignore[attr-defined]


# Textual's own lists, those of its command palette and of Select, need these two as well as ours.
_click, _move_page = OptionList._on_click, OptionList._move_page


async def _click_what_is_there(options: OptionList, event: Click) -> None:
    """Do nothing where the option has gone since it was painted; Textual fails there."""
    if event.style.meta.get("option", 0) < options.option_count:
        await _click(options, event)


def _move_where_there_is_room(options: OptionList, direction: Literal[-1, 1]) -> None:
    """Do nothing in a list without room, of which Textual knows no lines."""
    if options.scrollable_content_region:
        _move_page(options, direction)


OptionList._on_click = _click_what_is_there  # type: ignore[assignment, method-assign]
OptionList._move_page = _move_where_there_is_room  # type: ignore[assignment, method-assign]


Value = TypeVar("Value")


class WideGutterList(SelectionList[Value]):
    """A list with a cell before its boxes. As padding it would cost long lines the sign that they go on."""

    def _get_left_gutter_width(self) -> int:
        return super()._get_left_gutter_width() + 1


class SteadyApp(App[None]):
    """An app that bears messages to what is not there yet, or not any more, and says plainly what ended it."""

    crashed = False
    """Whether an exception has ended the app."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead: deque[Event] = deque()  # what was typed and clicked, and has not had its turn
        self._turns: asyncio.Task[None] | None = None

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        """The screens that may be seen through the current one.

        Textual counts the one below in any case, and then each of its messages would paint an opaque screen above it.
        """
        return [] if self.screen.styles.background.a == 1 else super()._background_screens

    def _handle_exception(self, error: Exception) -> None:
        """End the app with a plain traceback. Textual would print the values of all variables."""
        cause = getattr(error, "error", error)  # a worker's failure holds what it failed with
        if is_removed(cause):
            return
        self.crashed = True
        line = Text(defect(cause if isinstance(cause, BaseException) else error))
        error.__rich__ = lambda: line  # type: ignore[attr-defined]
        super()._handle_exception(error)

    async def on_event(self, event: Event) -> None:
        """Let keys and clicks wait until all that those before have led to is done; Textual sends all on at once.

        There a key would go to what had the focus before the last key moved it, or do to one line what was meant for
        the line before.
        """
        if isinstance(event, Key) and self.screen_stack:
            await self.screen._mounted_event.wait()  # one that comes back may be faster than a screen that opens
        if not isinstance(event, InputEvent | Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        self._ahead.append(event)
        if self._turns is None or self._turns.done():
            self._turns = asyncio.create_task(self._take_turns())

    async def _take_turns(self) -> None:
        while self._ahead and not self._exit:
            event = self._ahead.popleft()
            if not isinstance(event, MouseMove):
                with suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE):
                        await self._quiet(typing=isinstance(event, Key) and event.is_printable)
            await _reached(self, partial(self.on_turn, event))

    async def on_turn(self, event: Event) -> None:
        """Handle a key, a click or a paste; those before have been handled."""
        await super().on_event(event)

    async def _quiet(self, *, typing: bool) -> None:
        """Wait until nothing is left to handle on the screen, nor to do after it has been painted.

        The next letter of a word need not wait for the search for those before, which it ends.
        """
        while (stack := self.screen_stack) and not self._exit:
            await asyncio.sleep(0)  # parts that close take nothing more, and are not waited for: let them
            for node in (self.focused or self.screen).ancestors_with_self:  # the way of a key, to the app's bindings
                await _reached(node)
            if stack != self.screen_stack:
                continue
            searching = any(job.node is self.screen and not job._thread_worker for job in self.workers)
            if self.screen._callbacks or (searching and not typing):
                await asyncio.sleep(0.001)
            elif not any(node.message_queue_size for node in (self, *self.screen.walk_children(with_self=True))):
                return

    def has_notified(self, message: str) -> bool:
        """Whether a notification with these words is shown."""
        return any(note.message == message for note in self._notifications)


async def _reached(node: MessagePump, callback: Callable[[], object] = lambda: None) -> None:
    """Wait until a node has handled all that it was sent so far, and then a callback."""
    reached = asyncio.Event()

    async def call() -> None:
        try:
            await invoke(callback)
        finally:
            reached.set()

    if node.call_later(call):
        await reached.wait()


def is_removed(error: BaseException) -> bool:
    """Whether a widget fails because it is being removed, or the app ends: its parts are not there any more."""
    if not isinstance(error, NoMatches | MountError):
        return False
    node = [frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__)][-1]
    return isinstance(node, DOMNode) and is_going(node)


def is_going(node: DOMNode) -> bool:
    """Whether a widget, or one around it, is being removed, or the app ends."""
    return not node.is_attached or any(around._pruning for around in node.ancestors_with_self)


def set_virtual_size(view: ScrollView, size: Size) -> None:
    """Set how large the content of a view is; the plain way would lay out, and paint, the whole screen again."""
    view.set_reactive(Widget.virtual_size, size)
    view._scroll_update(size)
    view._refresh_scrollbars()


def lines_of(screen: Screen[Any]) -> list[Strip]:
    """Return the lines of a screen as they are painted; Textual exports them as a picture alone."""
    return screen._compositor.render_strips()
