"""A style for text that has none: Textual's filter for NO_COLOR fails on it."""

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter


class Styled(LineFilter):
    """Gives segments without a style the empty one, which looks the same."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line, all with a style."""
        if all(segment.style is not None for segment in segments):
            return segments
        return [
            segment if segment.style is not None else Segment(segment.text, Style.null(), segment.control)
            for segment in segments
        ]
