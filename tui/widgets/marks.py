"""Lists and boxes to tick, in which a tick is there or not; Textual's own show it by colour alone."""

from typing import TypeVar

from rich.segment import Segment
from textual.content import Content
from textual.strip import Strip
from textual.widgets import Checkbox, SelectionList
from textual.widgets.option_list import OptionDoesNotExist

Value = TypeVar("Value")

BOX = 3
"""The number of segments that Textual draws a tick with: ``[``, ``X``, ``]``."""


class MarkList(SelectionList[Value]):
    """A list in which several entries can be marked: ``[x]`` or ``[ ]``."""

    # The sign shows what is marked; the colour repeats it.
    DEFAULT_CSS = """
    MarkList > .selection-list--button, MarkList > .selection-list--button-highlighted {
        color: $text-muted; background: $boost;
    }
    MarkList > .selection-list--button-selected, MarkList > .selection-list--button-selected-highlighted {
        color: $text-success; background: $boost; text-style: bold;
    }
    """

    def render_line(self, y: int) -> Strip:
        """Draw a line with its mark."""
        strip = super().render_line(y)
        try:
            value = self.get_option_at_index(self.scroll_offset.y + y).value
        except OptionDoesNotExist:
            return strip
        box, rest = list(strip)[:BOX], list(strip)[BOX:]
        style = box[1].style
        marked = "x" if value in self.selected else " "
        return Strip([*(Segment(sign, style) for sign in ("[", marked, "]")), *rest])


class Tick(Checkbox):
    """A checkbox: ``[x]`` or ``[ ]``."""

    DEFAULT_CSS = """
    Tick > .toggle--button { color: $text-muted; background: $boost; }
    Tick.-on > .toggle--button { color: $text-success; background: $boost; text-style: bold; }
    """

    @property
    def _button(self) -> Content:
        style = self.get_visual_style("toggle--button")
        return Content.assemble(("[", style), ("x" if self.value else " ", style), ("]", style))
