"""A table of which only the visible rows are made and painted, however many there are."""

import re
from collections.abc import Sequence

from rich.text import Span, Text
from textual import events
from textual.message import Message

from tui.style.formats import GAP, TableColumn, laid_out, plain, shortened
from tui.widgets.line_view import GUTTER, LineView

BARS = re.compile("[━┄┃│]+")  # what is drawn is of no use to other programs


class TableView(LineView):
    """Rows of cells below a line of titles, with a cursor on one row.

    A column is as wide as the widest cell seen so far, so that it does not jump from round to round; where there is
    no room for that, columns are cut or left out (``laid_out``). Subclasses provide ``cells``, and call ``rows`` when
    what they show has changed.
    """

    DEFAULT_CSS = "TableView { overflow-x: hidden; }"

    class Moved(Message):
        """The cursor is on another row."""

    class TitleClicked(Message):
        """The user has clicked on a column's title."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    COLUMNS: Sequence[TableColumn] = ()  # to begin with
    SPARE = 0  # cells behind the columns that these do not take

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.columns = self.COLUMNS
        self._made: dict[int, Sequence[Text]] = {}
        self._widest: dict[str, int] = {}
        self._widths: dict[str, int] = {}

    def cells(self, index: int) -> Sequence[Text]:
        """Return a row's cells, in the order of the columns."""
        raise NotImplementedError

    def cell(self, index: int, key: str) -> Text:
        place = next(i for i, column in enumerate(self.columns) if column.key == key)
        return self._row(index)[place]

    def rows(self, count: int) -> None:
        """Show rows that have changed, of which there are so many now."""
        self._made.clear()
        self.count = count
        self._measure()

    def forget_widths(self) -> None:
        """Let the columns be as wide as the rows that come next."""
        self._widest.clear()

    def _row(self, index: int) -> Sequence[Text]:
        if index not in self._made:
            self._made[index] = self.cells(index)
        return self._made[index]

    def _measure(self) -> None:
        top = max(0, min(self.scroll_offset.y, self.count - 1))
        shown = [self._row(index) for index in range(top, min(self.count, top + max(1, self.size.height)))]
        for place, column in enumerate(self.columns):
            widest = max((row[place].cell_len for row in shown), default=0)
            self._widest[column.key] = max(len(column.label), widest, self._widest.get(column.key, 0))
        self._widths = laid_out(self.columns, self._widest, self.room - self.SPARE)
        self.resize(self.count, self.room)

    def watch_cursor(self, old: int, new: int) -> None:
        super().watch_cursor(old, new)
        self.post_message(self.Moved())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._measure()

    def on_resize(self) -> None:
        self._made.clear()
        self._widest.clear()
        self._measure()

    def head(self) -> tuple[Text, Text]:
        return Text(end=""), self._joined([plain(column.label, "bold") for column in self.columns])

    def line(self, index: int) -> tuple[Text, Text]:
        return Text(end=""), self._joined(self._row(index))

    def _joined(self, cells: Sequence[Text]) -> Text:
        parts: list[str] = []  # put together at once, which is quicker than Text.append
        spans: list[Span] = []
        at = 0
        for column, cell in zip(self.columns, cells, strict=True):
            if (width := self._widths.get(column.key)) is None:
                continue
            cell = shortened(cell, width)
            words, room = cell.plain, " " * (width - cell.cell_len)
            before, after = (room, "") if column.right else ("", room)
            begin = at + len(before)
            if cell.style:
                spans.append(Span(begin, begin + len(words), cell.style))
            spans += [span.move(begin) for span in cell.spans]
            parts += (before, words, after, " " * GAP)
            at = begin + len(words) + len(after) + GAP
        return Text("".join(parts[:-1]), end="", no_wrap=True, spans=spans)

    def copied(self, index: int) -> str:
        """Return a row, or for -1 the titles, as cells with tabs between them, which spreadsheets take."""
        cells = [column.label for column in self.columns] if index < 0 else [cell.plain for cell in self._row(index)]
        return "\t".join(BARS.sub("", cell).strip() for cell in cells)

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the mouse, or notify the parent of the title under it."""
        super().on_click(event)
        if event.y:
            return
        x = event.x - GUTTER
        for key, width in self._widths.items():
            x -= width + GAP
            if x < 0:
                self.post_message(self.TitleClicked(key))
                return
