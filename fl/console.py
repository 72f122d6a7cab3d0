"""The Rich console that everything is printed on: foreign text cannot act on the terminal, and is not markup."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fl.printable import printable_lines

if TYPE_CHECKING:
    from rich.progress import Progress


class SafeConsole(Console):
    """A console that shows text as it is: markup and emoji codes are text, and control characters are escaped.

    Colours are given as styles; the escape sequences of these are the only ones that are written, to terminals.
    """

    def __init__(self, **options: Any) -> None:
        """Create a console; options as Rich has them."""
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as Rich does, and make the text printable."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text == "\n" or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def bars() -> "Progress":
    """Return bars for standard error with the remaining time and a ``text`` of each; they vanish when they end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),  # gives way first
        expand=True,
        console=SafeConsole(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # results that go into a file stay there
    )
