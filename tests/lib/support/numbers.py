"""Numbers that are painted, read back from the terminal's lines and compared with exact ones."""

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import accumulate
from math import isnan

from textual.widget import Widget

from support.screens import strips
from tui.style.formats import GAP
from tui.widgets.line_view import GUTTER, LineView
from tui.widgets.table_view import TableView

NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*…)")
"""A number that is whole: one that is cut is none, and misses where it is wanted."""

Exact = float | None


class Checked:
    """Counts the numbers that were compared, by where they stand."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def numbers(self, place: str, shown: str, *wanted: Exact) -> None:
        """Compare all numbers in a text with the exact ones that are wanted there, in order.

        One on the screen is right if it is the exact one, rounded to as many decimals as are shown. What is not known
        (None, NaN) is not shown.
        """
        exact = [float(each) for each in wanted if each is not None and not isnan(each)]
        found = NUMBER.findall(shown)
        assert len(found) == len(exact), f"{place}: {shown!r} shows {found}, wanted {exact}"
        for text, value in zip(found, exact, strict=True):
            number = Decimal(text.replace(",", ""))
            half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)
            assert abs(number - Decimal(value)) <= half * Decimal("1.000001"), f"{place}: {shown!r}, wanted {exact}"
        self.counts[place] += len(found)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def lines_of(widget: Widget) -> list[str]:
    """Return the lines of a widget that the terminal gets; of one that scrolls, those beside its scrollbars."""
    region, lines = widget.region, strips(widget.app)
    width, height = region.size
    if isinstance(widget, LineView):
        width, height = GUTTER + widget.room, widget.scrollable_content_region.height
    return [line.crop(region.x, region.x + width).text for line in lines[region.y : region.y + height]]


def words_of(widget: Widget) -> str:
    """Return what the terminal gets of a widget as one line, with single blanks."""
    return " ".join(" ".join(lines_of(widget)).split())


def listed(view: LineView) -> Iterator[tuple[int, str]]:
    """Yield the lines of a view that the terminal gets, with their places among all; without their gutter."""
    for place, line in enumerate(lines_of(view)[view.HEADER :], view.scroll_offset.y):
        if place < view.count:
            yield place, line[GUTTER:]


def cells_of(table: TableView) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table that the terminal gets, with their places; the cells by the keys of their columns."""
    widths = table._widths
    begins = [0, *accumulate(width + GAP for width in widths.values())]
    for place, line in listed(table):
        yield place, {key: line[at : at + width] for (key, width), at in zip(widths.items(), begins, strict=False)}
