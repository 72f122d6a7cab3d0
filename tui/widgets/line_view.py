"""A scrolling view of many lines, of which only the visible ones are drawn: the base of grid, events and Gantt."""

import re
from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import App
from textual.binding import Binding
from textual.geometry import Offset, Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from flmarket.core.text import counted
from tui.style.colors import BAR, bar, over, selection
from tui.textual_internals import set_virtual_size

GUTTER = 1  # cells at the left for the bar of the chosen line


class LineView(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines with a cursor, below a fixed header and next to a fixed column of labels.

    Subclasses provide the lines: ``head()`` and ``line(index)`` return the fixed part and the part that scrolls.
    """

    BINDINGS = [
        Binding("up", "move(-1)", "Up", tooltip="Choose another line", show=False),
        Binding("down", "move(1)", "Down", tooltip="Choose another line", show=False),
        Binding("pageup", "page(-1)", "Page up", tooltip="Go a page up or down", show=False),
        Binding("pagedown", "page(1)", "Page down", tooltip="Go a page up or down", show=False),
        Binding("ctrl+home", "move(-1000000000)", "First", tooltip="Go to the first or the last line", show=False),
        Binding("ctrl+end", "move(1000000000)", "Last", tooltip="Go to the first or the last line", show=False),
        Binding("y", "copy", "Copy", tooltip="Copy the line", show=False),
        Binding("Y", "copy_all", "Copy all", key_display="Y", tooltip="Copy all lines, with the titles", show=False),
    ]
    DEFAULT_CSS = """
    LineView { background: transparent; }
    """

    HEADER = 1  # its lines

    cursor: reactive[int] = reactive(0, repaint=False)  # the line that is chosen
    count = 0  # the lines below the header

    _base = _bar = Style()
    _wide = 0
    _from = Offset(0, 0)  # the line and the column at which the view begins, as it is painted

    def resize(self, count: int, width: int) -> None:
        """Set the number of lines and the width of the widest, and redraw."""
        self.count = count
        size = Size(GUTTER + width, count + self.HEADER)
        if size != self.virtual_size:
            grows = self.styles.height is not None and self.styles.height.is_auto
            if not self.is_mounted or (grows and size.height != self.virtual_size.height):
                self.virtual_size = size
            else:
                set_virtual_size(self, size)  # the number of lines changes in every round
        self.cursor = max(0, min(self.cursor, count - 1))
        self.refresh()

    def head(self) -> tuple[Text, Text]:
        """Return the header: its fixed part, and the part that scrolls sideways."""
        return Text(), Text()

    def line(self, index: int) -> tuple[Text, Text]:
        """Return a line: its fixed part, and the part that scrolls sideways."""
        raise NotImplementedError

    def under(self, row: int) -> tuple[Text, Text] | None:
        """Return what stands in a row of the room below the last line, if anything does."""
        return None

    def render_lines(self, crop: Region) -> list[Strip]:
        # Looked up once, not for each line.
        self._base, self._bar, self._wide = self.rich_style, bar(self.app), GUTTER + self.room
        self._from = self.scroll_offset
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width, index = self._wide, y - self.HEADER + self._from.y
        if y < self.HEADER:
            fixed, moving = self.head()
        elif 0 <= index < self.count:
            fixed, moving = self.line(index)
        elif index >= self.count and (under := self.under(index - self.count)) is not None:
            fixed, moving = under
        else:
            return Strip.blank(width, self._base)
        listed = self.HEADER <= y < self.HEADER + self.count - self._from.y
        gutter = Segment(BAR, self._bar) if listed and self.is_chosen(index) else Segment(" " * GUTTER)
        left, rest = self._segments(fixed), self._segments(moving)
        if self._from.x:
            rest = list(Strip(rest).crop(self._from.x, self._from.x + width))
        # A strip keeps caches of its own: one for each line is enough.
        line = cut([gutter, *left, *rest], width)
        if listed and self.has_focus and self.at_cursor(index):
            return Strip(over(line, self._base, selection(self.app)), width)
        return Strip([Segment(text, self._base + style if style else self._base) for text, style, _ in line], width)

    def _segments(self, text: Text) -> list[Segment]:
        console = self.app.console
        words, base, at, segments = text.plain, console.get_style(text.style), 0, []
        for start, end, style in text.spans:
            if start < at:  # they overlap; else this is quicker
                return list(text.render(console))
            segments += [Segment(words[at:start], base), Segment(words[start:end], base + console.get_style(style))]
            at = end
        return [segment for segment in (*segments, Segment(words[at:], base)) if segment.text]

    def at_cursor(self, index: int) -> bool:
        """Whether the keys act on a line, as long as the view has the focus."""
        return index == self.cursor

    def is_chosen(self, index: int) -> bool:
        """Whether a line is marked as chosen: where nothing else follows it, that on which the keys act."""
        return self.at_cursor(index) and self.has_focus

    def go_to(self, index: int) -> None:
        """Go to a line, as the user wants it."""
        self.cursor = max(0, min(self.count - 1, index))
        self.choose()

    def choose(self) -> None:
        """Tell others what the user has chosen by going to a line, if anything follows from it."""

    @property
    def room(self) -> int:
        return self.scrollable_content_region.width - GUTTER

    def watch_cursor(self, old: int, new: int) -> None:
        if self.is_mounted:
            view = max(
                1, self.size.height - self.HEADER - self.scrollbar_size_horizontal * self.show_horizontal_scrollbar
            )
            top = self.scroll_offset.y
            if not top <= new < top + view:
                # Forced: the lines may have become more than fit only now, and the scrollbar comes later.
                self.scroll_to(y=new if new < top else new - view + 1, animate=False, force=True)
            self.refresh()

    def action_move(self, lines: int) -> None:
        self.go_to(self.cursor + lines)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height - 2))

    def on_click(self, event: events.Click) -> None:
        """Choose the line under the mouse; twice is as good as enter."""
        index = self.index_at(event.y)
        if index is not None:
            self.go_to(index)
            if event.chain == 2:
                self.app.simulate_key("enter")

    def copied(self, index: int) -> str:
        """Return a line, or for -1 the header, as text for other programs: with tabs between what stands apart."""
        line = "".join(part.plain for part in (self.head() if index < 0 else self.line(index)))
        return re.sub(r"\s{2,}", "\t", line.strip())

    def action_copy(self) -> None:
        copy(self.app, map(self.copied, range(self.cursor, min(self.cursor + 1, self.count))))

    def action_copy_all(self) -> None:
        copy(self.app, map(self.copied, range(-self.HEADER, self.count)))

    def index_at(self, y: int) -> int | None:
        """Return the line at a row of the widget, if there is one."""
        index = y - self.HEADER + self.scroll_offset.y
        return index if y >= self.HEADER and 0 <= index < self.count else None


def copy(app: App[Any], lines: Iterable[str]) -> None:
    """Copy lines to the clipboard, and say how many."""
    copied = list(lines)
    app.copy_to_clipboard("\n".join(copied))
    app.notify(f"{counted(len(copied), 'line')} copied", timeout=2)


def cut(line: list[Segment], width: int) -> list[Segment]:
    """Return a line as wide as that; one that is cut ends in ``…``."""
    blank = width - sum(len(text) if text.isascii() else cell_len(text) for text, _, _ in line)
    if blank >= 0:
        return [*line, Segment(" " * blank)]
    shown = Segment.adjust_line_length(line, width - 1)
    return [*shown, Segment("…", shown[-1].style)]
