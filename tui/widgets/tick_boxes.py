"""Lists and boxes to tick, in which a tick is there or not; Textual's own show it by colour alone."""

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.content import Content
from textual.strip import Strip
from textual.widgets import Button, Checkbox

from tui.style.colors import BAR, barred
from tui.textual_internals import Value, WideGutterList


class MarkList(WideGutterList[Value]):
    """A list in which several entries can be marked: ``[x]`` or ``[ ]``. Enter presses the dialog's primary button."""

    BINDINGS = [Binding("enter", "go", "Go", key_display="enter", tooltip="Continue with what is marked")]

    def action_go(self) -> None:
        if not self.selected and self.highlighted is not None:
            self.select(self.get_option_at_index(self.highlighted))
        self.call_after_refresh(self._press)  # which button that is depends on what is marked

    def _press(self) -> None:
        self.screen.query_one("Button.-primary", Button).press()

    def render_line(self, y: int) -> Strip:
        strip, place = barred(self, super().render_line(y)), self.scroll_offset.y + y
        if place >= self.option_count:
            return strip
        bar, _, _, blank, *rest = strip
        style = (blank.style or Style()) + Style(meta={"option": place})  # which a click on the box marks
        box = "[x]" if self.get_option_at_index(place).value in self.selected else "[ ]"
        left = bar if bar.text == BAR else blank
        return Strip([left, Segment(box, style), blank, *rest])


class Tick(Checkbox):
    """A checkbox: ``[x]`` or ``[ ]``."""

    DEFAULT_CSS = """
    Tick > .toggle--button { color: $text-muted; background: $boost; }
    Tick.-on > .toggle--button { color: $text-success; background: $boost; text-style: bold; }
    """

    def render(self) -> Content:
        style = self.get_visual_style("toggle--button")
        box = ("[", style), ("x" if self.value else " ", style), ("]", style)
        return Content.assemble(*box, self.label.pad(1, 1).stylize_before(self.get_visual_style("toggle--label")))
