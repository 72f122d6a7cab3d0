"""The look of the row that is chosen, in every table and list: a tint behind it, and a bar at its left with the focus.

The tint is the theme's ``block-cursor-background`` as ``legible`` sets it. Where there are no colours of our own, as
with NO_COLOR and in ANSI themes, the row is in reverse video.
"""

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.strip import Strip
from textual.widgets import OptionList

from tui.style.contrast import legible

BAR = "▌"
REVERSE = Style(reverse=True)


def selection(app: App[object]) -> Style:
    """Return what is laid over the text of the chosen row."""
    variables = app.theme_variables
    if variables["block-cursor-text-style"] == "reverse":
        return REVERSE
    return Style(bgcolor=variables["block-cursor-background"])


def bar(app: App[object]) -> Style:
    chosen, variables = selection(app), app.theme_variables
    if chosen is REVERSE:
        return Style()
    return Style(color=legible(variables["primary"], variables["block-cursor-background"]))


def over(segments: Iterable[Segment], base: Style, chosen: Style) -> list[Segment]:
    """Return the segments of the chosen row; in reverse video all of it is in one colour."""
    if chosen is REVERSE:
        return [Segment(text, base + REVERSE) for text, _, _ in segments]
    return [Segment(text, (base + style if style else base) + chosen) for text, style, _ in segments]


def _option(style: Style | None) -> object:
    return style.meta.get("option") if style else None


def barred(options: OptionList, strip: Strip) -> Strip:
    """Return a line of a list; of the chosen option, with the bar in place of its first cell if the list has focus."""
    chosen = options.highlighted
    if not options.has_focus or chosen is None or all(_option(style) != chosen for _, style, _ in strip):
        return strip
    first, rest = strip.divide([1, strip.cell_length])
    style = bar(options.app)
    return Strip([*(Segment(BAR, (old or Style()) + style) for _, old, _ in first), *rest], strip.cell_length)
