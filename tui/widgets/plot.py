"""Curves in the terminal: axes on whole cells, levels behind the curves, and a sign and a name at the end of each."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from tui.style.formats import fit

DASH, PLAYHEAD, GRID = "┄", "│", "·"
FREE = frozenset((" ", DASH, PLAYHEAD, GRID))  # what the name of a curve may cover
FARTHEST = 8  # cells to the left of its place at which the sign of a curve may stand, if there is no room nearer
NEAR = 2  # rows from the end of a curve at which its name may stand, and one more for each that ends beside it
LONGEST = 24  # cells of a name
DOTS = np.array([[0x40, 0x80], [0x04, 0x20], [0x02, 0x10], [0x01, 0x08]])
"""The bits of a Braille character, from the lowest row."""
TICKS = tuple(sorted(m * 10.0**e for e in range(-9, 16) for m in (1, 2, 5, 25) if m != 25 or e >= 0))
"""From one tick to the next."""
ACROSS, UP = range(8, 21), range(2, 8)  # the same in cells
LEAST = 1e-3  # the least span of an axis, as a part of its numbers: what differs by less is level
SLACK = 1e-9

Cell = tuple[str, Style]


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale on which each cell is worth the same, and ticks at round numbers fall on whole cells."""

    low: float  # the number in the middle of the first cell
    worth: float  # how much more the next cell is
    ticks: tuple[tuple[int, str], ...]  # cells and their labels

    def dots(self, values: NDArray[np.float64], each: int, cells: int) -> NDArray[np.int64]:
        """Return the places of numbers in dots, of which a cell has so many."""
        places = np.floor(((values - self.low) / self.worth + 0.5) * each + SLACK)
        return np.clip(places, 0, cells * each - 1).astype(np.int64)

    def cell(self, value: float, cells: int) -> int:
        """Return the place of a number."""
        return int(self.dots(np.array([value]), 1, cells)[0])


def rounded(low: float, high: float, parts: int = 10) -> tuple[float, float, float]:
    """Return limits around numbers, which change only at multiples of a step, and the step, of so many at most.

    Limits of more numbers are never narrower, but for numbers negligible against the step: each step, of 1, 5, 10,
    50 and so on, is a multiple of those before it.
    """
    span = max(high - low, LEAST * max(abs(low), abs(high))) or 1.0
    power = 10.0 ** floor(log10(span / parts))
    step = next(step for step in (power, 5 * power, 10 * power) if step * (1 + SLACK) >= span / parts)
    return floor(low / step + SLACK) * step, ceil(high / step - SLACK) * step, step


@lru_cache(maxsize=256)
def axis(low: float, high: float, cells: int, apart: range, finest: float = 0.0) -> Axis:
    """Return the scale of so many cells that shows numbers as large as it can; with a ``finest`` tick, these alone."""
    low, high, step = (low, high, finest) if finest else rounded(low, high)
    high = max(high, low + step)
    span, gaps = high - low, cells - 1
    found = []
    for between in apart if gaps else ():
        for tick in TICKS[bisect_left(TICKS, max(finest, between * span / gaps) * (1 - SLACK)) :]:
            worth = tick / between
            first = floor(low / worth + SLACK) * worth
            if first + gaps * worth >= high - SLACK * worth:
                # A scale has two ticks wherever there is room for them.
                lonely = 0 if tick <= span / 2 else 1 if len(_places(low, high, tick)) > 1 else 2
                found.append((lonely, float(f"{worth:.6g}"), abs(between - apart[len(apart) // 3]), tick, first, worth))
                break
    if not found:  # a single cell
        return Axis(low, span, ())
    *_, tick, first, worth = min(found)
    places = _places(low, high, tick)
    decimals = max(0, -floor(log10(tick) + SLACK))
    return Axis(first, worth, tuple((round((n * tick - first) / worth), f"{n * tick:.{decimals}f}") for n in places))


def _places(low: float, high: float, tick: float) -> range:
    """Return the multiples of a tick between two numbers."""
    return range(ceil(low / tick - SLACK), floor(high / tick + SLACK) + 1)


class PlottedCurve(NamedTuple):
    """The dots of a curve; in a shared cell those of the highest rank show their colour."""

    xs: NDArray[np.float64]
    ys: NDArray[np.float64]
    style: str
    sign: str
    name: str
    rank: int


class Plot(Widget):
    """Curves over something that begins at 0, or over a part of it.

    What is plotted after ``begin`` is drawn with the next refresh.
    """

    COMPONENT_CLASSES = {"plot--axis", "plot--tick"}
    DEFAULT_CSS = """
    Plot { height: 1fr; }
    Plot > .plot--axis { color: $foreground 40%; }
    Plot > .plot--tick { color: $text-muted; }
    """

    grid = False  # whether faint lines lead from the ticks at the left across the plot

    def __init__(self) -> None:
        super().__init__()
        self._base = Style()
        self._across, self._left = Axis(0, 1, ()), 0  # as drawn last
        self._note = ""  # at the right of the labels across
        self.begin(10)

    def begin(self, last: float, *heights: float, first: float = 0) -> None:
        """Remove all that is plotted."""
        self._first, self._last, self._heights = first, last, list(heights)
        self._mark: tuple[float, Style, str] | None = None
        self.curves: list[PlottedCurve] = []
        self._levels: list[tuple[float, str, str]] = []
        self._lines: list[Strip] = []
        self.refresh()

    def level(self, y: float, label: str, style: str) -> None:
        """Draw a dashed line at a height, behind the curves, with a label at its right end."""
        self._levels.append((y, label, style))

    def playhead(self, x: float, style: Style, label: str = "") -> None:
        """Draw an upright line at a place, behind the curves, with a label beside it where there is room."""
        self._mark = x, style, label

    def curve(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        style: str,
        sign: str = "",
        name: str = "",
        *,
        chosen: bool = False,
    ) -> None:
        """Draw a curve, with a sign at its end, or next to it where another one stands; one without a sign is fainter.

        The name follows the sign where there is room, that of the chosen curve first; names of curves that end in one
        column stand in the order of these ends. A cell of several curves shows
        the dots of all in the colour of the chosen one; else those with signs take turns.
        """
        points = np.array([(x, y) for x, y in zip(xs, ys, strict=True) if isfinite(y)]).reshape(-1, 2)
        if len(points):
            self.curves.append(PlottedCurve(points[:, 0], points[:, 1], style, sign, name, bool(sign) + chosen))

    def value_at(self, column: int) -> float:
        """Return what a column of the widget stands for, as it was drawn last."""
        return self._across.low + (column - self._left) * self._across.worth

    def notify_style_update(self) -> None:
        """Draw again in other colours."""
        super().notify_style_update()
        self._lines = []

    def render_line(self, y: int) -> Strip:
        size = self.size
        if len(self._lines) != size.height or self._lines[0].cell_length != size.width:
            self._lines = self._draw(size.width, size.height)
        return self._lines[y]

    def _draw(self, width: int, height: int) -> list[Strip]:
        base = self._base = self.rich_style  # looked up once: it takes long
        frame, faint = map(self.get_component_rich_style, ("plot--axis", "plot--tick"))
        heights = [*self._heights, *(y for y, *_ in self._levels)]
        heights += [float(end(ys)) for _, ys, *_ in self.curves for end in (np.min, np.max)]
        rows = max(1, height - 1)
        up = axis(min(heights, default=0.0), max(heights, default=1.0), rows, UP)
        left = max([3, *(len(label) for _, label in up.ticks)])
        right = min(width // 4, max((len(label) + 1 for _, label, _ in self._levels), default=0))
        columns = max(1, width - left - right)
        named = max((min(LONGEST, len(curve.name)) + 2 for curve in self.curves if curve.name), default=0)
        across = axis(self._first, self._last, max(1, columns - min(named, columns // 4)), ACROSS, finest=1)

        self._across, self._left = across, left

        # From the lowest row, as everything here. The first row and column are the frame.
        cells = [[("─", frame)] * columns, *([("│", frame)] + [(" ", base)] * (columns - 1) for _ in range(1, rows))]
        for row, _ in up.ticks:
            cells[row][0] = "┤", frame
            if self.grid and row:
                cells[row][1:] = [(GRID, frame)] * (columns - 1)
        for column, _ in across.ticks:
            cells[0][column] = "┬", frame
        cells[0][0] = "└", frame
        self._draw_curves(cells, across, up)
        self._draw_levels(cells, up)
        if self._mark is not None:
            x, style, label = self._mark
            column = across.cell(x, columns)
            for line in cells:
                if line[column][0] in FREE:
                    line[column] = PLAYHEAD, base + style
        self._draw_signs(cells, across, up)
        if self._mark is not None and label:
            _write_beside(cells, column, label, base + style)
        numbers, labels = dict(up.ticks), self._labels(up, rows)
        lines = [
            [
                *((character, faint) for character in numbers.get(row, "").rjust(left)),
                *line,
                *((character, labels[row][1]) for character in f" {labels[row][0]}".ljust(right)[:right]),
            ]
            for row, line in enumerate(cells)
        ]
        below = [(" ", base)] * width
        for column, label in across.ticks:
            begin = max(0, min(left + column - (len(label) - 1) // 2, width - len(label)))
            below[begin : begin + len(label)] = [(character, faint) for character in label]
        if self._note:
            below[-len(self._note) - 1 :] = [(character, faint) for character in f" {self._note}"]
        return [_strip(line, width, base) for line in [*lines[::-1], below][:height]]

    def _style(self, style: str) -> Style:
        return self._base + Style.parse(style)

    def _draw_curves(self, cells: list[list[Cell]], across: Axis, up: Axis) -> None:
        rows, columns = len(cells), len(cells[0])
        dots = np.zeros((rows, columns), np.int64)
        here: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, curve in enumerate(self.curves):
            x, y = _joined(across.dots(curve.xs, 2, columns), up.dots(curve.ys, 4, rows))
            np.bitwise_or.at(dots, (y // 4, x // 2), DOTS[y % 4, x % 2])
            for cell in set(zip((y // 4).tolist(), (x // 2).tolist(), strict=True)):
                here[cell].append(place)
        ranks, styles = [curve.rank for curve in self.curves], [self._style(curve.style) for curve in self.curves]
        for (row, column), places in here.items():
            highest = max(ranks[place] for place in places)
            shown = [place for place in places if ranks[place] == highest]
            cells[row][column] = chr(0x2800 + dots[row, column]), styles[shown[column % len(shown)]]

    def _draw_levels(self, cells: list[list[Cell]], up: Axis) -> None:
        """Draw the levels in the cells that curves leave free; those in one row take turns."""
        rows: dict[int, list[Style]] = defaultdict(list)
        for y, _, style in self._levels:
            rows[up.cell(y, len(cells))].append(self._style(style))
        for row, styles in rows.items():
            for column, (character, _) in enumerate(cells[row]):
                if character in {" ", GRID}:
                    cells[row][column] = DASH, styles[column % len(styles)]

    def _labels(self, up: Axis, rows: int) -> dict[int, tuple[str, Style]]:
        """Return the labels of the levels by row: each near its level, no two in one row."""
        found: dict[int, tuple[str, Style]] = defaultdict(lambda: ("", self._base))
        levels = sorted(self._levels[:rows], key=lambda level: level[0])  # from the lowest
        free = 0
        for place, (y, label, style) in enumerate(levels):
            row = min(max(free, up.cell(y, rows)), rows - len(levels) + place)
            found[row], free = (label, self._style(style)), row + 1
        return found

    def _draw_signs(self, cells: list[list[Cell]], across: Axis, up: Axis) -> None:
        """Draw signs and names: of the curves that end in one column in the order of their last values."""
        rows, columns = len(cells), len(cells[0])
        ends: dict[int, list[PlottedCurve]] = defaultdict(list)
        for curve in sorted((it for it in self.curves[::-1] if it.sign), key=lambda curve: curve.ys[-1]):
            ends[across.cell(curve.xs[-1], columns)].append(curve)
        taken: set[tuple[int, int]] = set()
        bare: list[tuple[int, PlottedCurve]] = []
        for column, curves in sorted(ends.items(), key=lambda end: -max(curve.rank for curve in end[1])):
            words = [fit(it.name, min(LONGEST, len(it.name), columns - column - 2)) for it in curves]
            free = [row for row in range(1, rows) if _free(cells, taken, column, row, max(map(len, words)))]
            first = sorted((n for n, word in enumerate(words) if word), key=lambda n: -curves[n].rank)
            named = sorted(first[: len(free)])
            natural = [up.cell(curves[n].ys[-1], rows) for n in named]
            nearest = [min(range(len(free)), key=lambda at: abs(free[at] - row)) for row in natural]
            places = {n: free[at] for n, at in zip(named, _apart(nearest, len(free)), strict=True)}
            for n, row in zip(named, natural, strict=True):
                if abs(places[n] - row) > NEAR + len(named):
                    del places[n]
            for n, curve in enumerate(curves):
                if n not in places:
                    bare.append((column, curve))
                    continue
                style, end = self._style(curve.style), column + len(words[n]) + 2
                cells[places[n]][column + 1 : end] = [(character, style) for character in f" {words[n]}"]
                cells[places[n]][column] = curve.sign, self._style(f"bold {curve.style}")
                taken |= {(at, places[n]) for at in range(column - 2, end + 1)}  # no other sign touches it
        for column, curve in bare:
            row = up.cell(curve.ys[-1], rows)
            near = range(column, max(0, column - FARTHEST) - 1, -1)
            there = ((c, r) for c in near for r in range(rows) if (c, r) not in taken)
            found = min(there, key=lambda cell: (column - cell[0] + abs(cell[1] - row), cell), default=None)
            if found is not None:
                taken |= {(found[0] + beside, found[1]) for beside in (-1, 0, 1)}
                cells[found[1]][found[0]] = curve.sign, self._style(f"bold {curve.style}")


def _write_beside(cells: list[list[Cell]], column: int, label: str, style: Style) -> None:
    """Write a label at the right of a column, or at its left, in the highest row in which it covers nothing."""
    sides = (range(column + 2, column + 2 + len(label)), range(column - 1 - len(label), column - 1))
    for line in cells[:0:-1]:
        for side in sides:
            if side.start > 0 and side.stop <= len(line) and all(line[at][0] in FREE for at in side):
                line[side.start : side.stop] = [(character, style) for character in label]
                return


def _free(cells: list[list[Cell]], taken: set[tuple[int, int]], column: int, row: int, length: int) -> bool:
    """Whether there is room in a row for a sign and, after it, a name."""
    end = column + length + 2
    return (
        end <= len(cells[0])
        and (column, row) not in taken
        and all(character in FREE for character, _ in cells[row][column + 1 : end + 1])
    )


def _apart(wanted: Sequence[int], count: int) -> list[int]:
    """Return rising places below ``count``, each near the one that is wanted, no two of which are the same."""
    order = np.arange(len(wanted))
    rest = np.array(wanted, np.int64) - order
    up, down = np.maximum.accumulate(rest), np.minimum.accumulate(rest[::-1])[::-1]
    places: list[int] = (np.clip((up + down + 1) // 2, 0, count - len(wanted)) + order).tolist()
    return places


def _joined(xs: NDArray[np.int64], ys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts = np.maximum(1, np.maximum(abs(np.diff(xs)), abs(np.diff(ys))))
    part = (np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)) / np.repeat(counts, counts)
    x, y = (np.rint(np.repeat(v[:-1], counts) + part * np.repeat(np.diff(v), counts)) for v in (xs, ys))
    return np.append(x, xs[-1]).astype(np.int64), np.append(y, ys[-1]).astype(np.int64)


def _strip(line: Sequence[Cell], width: int, base: Style) -> Strip:
    """Return a line of the screen, with one segment for neighbours of one style."""
    runs = groupby(line, key=lambda cell: id(cell[1]))
    found = [list(run) for _, run in runs]
    segments = [Segment("".join(character for character, _ in run), run[0][1]) for run in found]
    return Strip(Segment.adjust_line_length(segments, width, base), width)
