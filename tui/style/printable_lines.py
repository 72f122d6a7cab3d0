"""The first filter of every line of the screen: foreign text reaches the terminal without control sequences."""

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter


class Printable(LineFilter):
    """Takes the place of characters that are not shown as themselves, without moving the others.

    Segments without a style get the empty one, which looks the same: Textual's filter for NO_COLOR fails on them.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line, printable, as wide as they were, and all with a style."""
        return [
            segment
            if segment.style is not None and segment.text.isprintable()
            else Segment("".join(map(_shown, segment.text)), segment.style or Style.null(), segment.control)
            for segment in segments
        ]


def _shown(character: str) -> str:
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" * cell_len(character)
