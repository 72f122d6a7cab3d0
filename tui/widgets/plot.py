"""The plot that curves are drawn in: levels behind them, and a sign at the end of each."""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from textual.containers import Grid
from textual.geometry import Region
from textual.reactive import reactive
from textual_hires_canvas import Canvas
from textual_plot import PlotWidget

DASH = "┄"
FARTHEST = 8
"""Cells to the left of its place at which the sign of a curve may stand, if there is no room nearer."""


class Plot(PlotWidget, can_focus=False):
    """A plot with small margins; the area around it has the keys."""

    DEFAULT_CSS = """
    Plot { height: 1fr; }
    Plot > .plot--axis, Plot > .plot--tick { color: $text-muted; }
    """

    margin_top = reactive(0)
    margin_bottom = reactive(1)
    margin_left = reactive(6)

    def __init__(self) -> None:
        self._quiet = True  # the base class asks for repaints while it is made
        super().__init__(allow_pan_and_zoom=False)
        self._levels: list[tuple[float, str]] = []
        self._ends: list[tuple[float, float, str, str]] = []
        self._quiet = False

    def clear(self) -> None:
        """Remove curves, levels and signs."""
        self._levels, self._ends = [], []
        super().clear()

    def level(self, y: float, style: str) -> None:
        """Draw a dashed line at a height, behind the curves."""
        self._levels.append((y, style))

    def end(self, x: float, y: float, sign: str, style: str) -> None:
        """Write a sign where a curve ends, before all curves, or beside it where another sign stands."""
        if math.isfinite(y):
            self._ends.append((x, y, sign, style))

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Draw at once what is plotted in the block.

        The base class would draw it while the screen is being painted, so that it has to be painted a second time; and
        it would paint the area around the canvas, too, with every line that is added.
        """
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False
        self._needs_rerender = True
        self.render()

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Ask for a repaint, except while something is plotted."""
        if self._quiet:
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _render_plot(self) -> None:
        if not self.query("#plot"):
            return
        canvas, room = self.query_one("#plot", Canvas), self._scale_rectangle  # inside the frame
        with canvas.batch_refresh():  # the base class asks for a repaint with every dot that it sets
            super()._render_plot()
            if room.area:
                self._draw_levels(canvas, room)
                self._draw_ends(canvas, room)

    def _draw_levels(self, canvas: Canvas, room: Region) -> None:
        """Draw the levels in the cells that curves leave free; those in one row take turns."""
        rows: dict[int, list[str]] = defaultdict(list)
        for y, style in self._levels:
            rows[self._place(0, y, room)[1]].append(style)
        for row, styles in rows.items():
            free = [x for x in range(room.x, room.right) if canvas.get_pixel(x, row)[0] == " "]
            for turn, style in enumerate(styles):
                cells = [(x, row) for x in free if x % len(styles) == turn]
                canvas.set_pixels(cells, char=DASH, style=style)

    def _draw_ends(self, canvas: Canvas, room: Region) -> None:
        taken: set[tuple[int, int]] = set()
        for x, y, sign, style in self._ends:
            column, row = self._place(x, y, room)
            near = range(column, max(room.x, column - FARTHEST) - 1, -1)
            free = ((c, r) for c in near for r in range(room.y, room.bottom) if (c, r) not in taken)
            place = min(free, key=lambda cell: (column - cell[0] + abs(cell[1] - row), cell), default=None)
            if place is not None:
                taken.add(place)
                canvas.set_pixel(*place, char=sign, style=style)

    def _place(self, x: float, y: float, room: Region) -> tuple[int, int]:
        """Return the cell of a point: the nearest one inside the frame."""
        column, row = self.get_pixel_from_coordinate(x, y)
        return max(room.x, min(room.right - 1, column)), max(room.y, min(room.bottom - 1, row))

    def _update_margin_sizes(self) -> None:
        # The base class assumes that its parts are mounted; the user may leave a screen before they are.
        if self.query(Grid):
            super()._update_margin_sizes()

    def _update_legend(self) -> None:
        if self.query("#legend"):
            super()._update_legend()
