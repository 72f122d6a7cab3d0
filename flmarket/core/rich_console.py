"""Rich's consoles and tables: foreign text cannot act on the terminal, and is not markup.

Only what prints imports this, as Rich takes its time to import.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table

from flmarket.core.text import printable_lines
from flmarket.core.text_table import TextTable

PIPED_WIDTH = 160  # columns of a table that goes into a file or a pipe, which have no width
_GAP = 2  # columns between two of a table that is drawn


class SafeConsole(Console):
    """A console that shows text as it is: markup and emoji codes are text, and control characters are escaped.

    Colours are given as styles; the escape sequences of these are the only ones that are written, to terminals.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text == "\n" or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def stdout() -> SafeConsole:
    return SafeConsole() if sys.stdout.isatty() else SafeConsole(width=PIPED_WIDTH)


def stderr() -> SafeConsole:
    return SafeConsole(stderr=True)


def show(header: Sequence[str], *sections: Iterable[Sequence[str]]) -> None:
    """Print a table of names and sentences; in a narrow terminal words are broken, not cut."""
    table = Table(*(Column(name, overflow="fold") for name in header))
    for rows in sections:
        for row in rows:
            table.add_row(*row)
        table.add_section()
    stdout().print(table)


def draw(console: Console, table: TextTable) -> None:
    """Draw a table of numbers for a terminal.

    Columns that the terminal has no room for follow in further tables, as a number that is cut is another number.
    """
    title = table.title
    names, *columns = zip(table.header, *table.rows, strict=True)
    longest = max((cell_len(word) for name in names for word in re.findall(r" *\S+", name)), default=0)
    room = console.width - min(longest, console.width // 3) - 2 * _GAP
    parts: list[list[tuple[Sequence[str], int]]] = []
    left = 0
    for column in columns:
        head, *cells = column
        width = min(max(map(cell_len, [*head.split(), *cells])), room - _GAP)
        if width + _GAP > left:
            parts.append([])
            left = room
        parts[-1].append((column, width))
        left -= width + _GAP
    for part in parts:
        drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
        drawn.add_column(names[0], overflow="fold")
        for (head, *_), width in part:
            drawn.add_column(head, justify="right", width=width, overflow="fold")
        for row in zip(names[1:], *(cells for (_, *cells), _ in part), strict=True):
            drawn.add_row(*row)
        console.print(drawn)
        title = ""
