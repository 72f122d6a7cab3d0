"""Scroll bars that are thin: half a cell, drawn in the colour that the style sheet gives them."""

from typing import Any

from rich.segment import Segment, Segments
from rich.style import Style
from textual.scrollbar import ScrollBarRender


class ThinBar(ScrollBarRender):
    """Draws the part of a bar that moves as a line, and nothing of the rest."""

    VERTICAL_BARS = HORIZONTAL_BARS = [" "]  # whole cells

    @classmethod
    def render_bar(cls, *args: Any, **sizes: Any) -> Segments:
        bar, line = super().render_bar(*args, **sizes), "▐" if sizes["vertical"] else "▂"
        bar.segments = [
            Segment(line * len(text), style + Style(reverse=False)) if style and style.reverse else Segment(text, style)
            for text, style, _ in bar.segments
        ]
        return bar
