"""The Rich console that everything is printed on: foreign text cannot act on the terminal, and is not markup."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from flmarket.core.text import printable_lines


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
