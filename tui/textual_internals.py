"""All that overrides or calls private names of Textual, with why; seen with Textual 8.2.8.

tests/tui/test_textual_internals.py fails for what a later Textual makes needless.
"""

import codecs
from functools import partial
from traceback import walk_tb
from typing import Any, Literal, TypeVar

from rich.text import Text
from textual._context import active_app
from textual.app import App
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.drivers import linux_driver
from textual.events import Click
from textual.geometry import Size
from textual.keys import _character_to_key as character_to_key
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

    def _handle_exception(self, error: Exception) -> None:
        """End the app with a plain traceback. Textual would print the values of all variables."""
        cause = getattr(error, "error", error)  # a worker's failure holds what it failed with
        if is_removed(cause):
            return
        self.crashed = True
        line = Text(defect(cause if isinstance(cause, BaseException) else error))
        error.__rich__ = lambda: line  # type: ignore[attr-defined]
        super()._handle_exception(error)

    async def screen_mounted(self) -> None:
        """Wait for the newest screen: a key may be faster than the screen that the one before it opens."""
        await self.screen._mounted_event.wait()

    def has_notified(self, message: str, title: str) -> bool:
        """Whether a notification with these words is shown."""
        return any((note.message, note.title) == (message, title) for note in self._notifications)


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
