"""Plots of which a part is shown: by keys, or by the mouse wheel."""

from math import inf

from textual import events
from textual.binding import Binding
from textual.dom import DOMNode
from textual.message import Message

from tui.widgets.plot import Plot, rounded

CLOSEST = 5  # the fewest rounds, or episodes, that are shown

ZOOM = (
    Binding("z", "zoom_in", "Zoom", tooltip="Zoom in, as the mouse wheel does", show=False),
    Binding("Z", "zoom_out", "All", tooltip="Zoom out, to the whole curves", show=False),
)
MOVE = (
    Binding("less_than_sign", "move(-0.5)", "Earlier", tooltip="When zoomed in, show an earlier part", show=False),
    Binding("greater_than_sign", "move(0.5)", "Later", tooltip="When zoomed in, show a later part", show=False),
)


def room(last: int) -> int:
    """Return how many rounds a growing axis has: more than there are, in steps, so that it changes now and then."""
    return max(10, int(rounded(0, last, parts=20)[1]))


class ZoomPlot(Plot):
    """A plot that shows all, or a part, which stays where it is while more comes."""

    class Zoomed(Message):
        """Other rounds are to be drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.window: tuple[int, int] | None = None  # None for all
        self._whole = 0

    def show(self, whole: int, at: int | None = None) -> tuple[int, int]:
        """Remove all that is plotted; return the first and the last round to plot, ``at`` among them if it is given."""
        self._whole = whole
        first, last = self.window or (0, whole)
        if at is not None and not first <= at <= last:
            first, last = self.window = self._within(at - (last - first) / 2, last - first)
        self.begin(last, first=first)
        self._note = "Z: all" if self.window else ""
        return first, last

    def zoom(self, part: float, at: float | None = None) -> None:
        """Show such a part of what is shown now, or so many times as much; a place in it stays where it is."""
        first, last = self.window or (0, self._whole)
        if at is None:  # the round shown, or the newest
            at = self._mark[0] if self._mark else last
        width = part * (last - first)
        if width >= self._whole:
            self._set(None)
        elif width >= CLOSEST:
            self._set(self._within(at - part * (at - first), width))

    def move(self, windows: float) -> None:
        """Show what comes later or earlier."""
        if self.window:
            first, last = self.window
            self._set(self._within(first + windows * (last - first), last - first))

    def _within(self, first: float, width: float) -> tuple[int, int]:
        first = max(0.0, min(first, self._whole - width))
        low, high, _ = rounded(first, first + width)  # as the axis has it
        return int(low), min(self._whole, int(high))

    def _set(self, window: tuple[int, int] | None) -> None:
        assert self.parent is not None  # noqa: S101 - it is mounted
        for plot in self.parent.query(ZoomPlot):  # plots below one another show the same rounds
            plot.window = window
        self.post_message(self.Zoomed())

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.zoom(0.5, self.value_at(event.x))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.zoom(2, self.value_at(event.x))


class Zooming(DOMNode):
    """The part of a screen, or the screen, that has the keys ``ZOOM`` for the plots in it."""

    def action_zoom_in(self) -> None:
        self.query(ZoomPlot).first().zoom(0.5)

    def action_zoom_out(self) -> None:
        self.query(ZoomPlot).first().zoom(inf)

    def action_move(self, windows: float) -> None:
        self.query(ZoomPlot).first().move(windows)
