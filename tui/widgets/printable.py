"""The last filter of every line of the screen: foreign text reaches the terminal without control sequences."""

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter


class Printable(LineFilter):
    """Takes the place of characters that are not shown as themselves, without moving the others."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line, printable and as wide as they were."""
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [
            segment
            if segment.text.isprintable()
            else Segment("".join(map(_shown, segment.text)), segment.style, segment.control)
            for segment in segments
        ]


def _shown(character: str) -> str:
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" * cell_len(character)
