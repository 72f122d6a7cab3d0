"""Lists of options that can bear clicks and keys while they change, and while they have no room."""

from typing import Literal

from textual.events import Click
from textual.widgets import OptionList

__all__ = ["OptionList"]
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
