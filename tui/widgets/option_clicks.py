"""Clicks on lists of options."""

from textual.events import Click
from textual.widgets import OptionList

_click = OptionList._on_click


async def on_click(options: OptionList, event: Click) -> None:
    """Do nothing where the option has gone since it was painted; Textual fails there."""
    if event.style.meta.get("option", 0) < options.option_count:
        await _click(options, event)
