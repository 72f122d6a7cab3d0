"""Money as bars on one axis: what a client asks, what a service offers, and what its rivals do.

Whatever colours show, characters show too: a solid bar was served, a broken one was not, rivals have their signs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.style import Style
from rich.text import Span, Text

from des.money import MICRO, Micro
from tui.style.colors import series_color, sign
from tui.widgets.plot import Axis, axis

BID, SERVED, REFUSED, NONE, EQUAL = "│", "━", "╌", "┈", "="
LEGEND = f"{BID} bid  {SERVED} served  {REFUSED} not  1 2 rivals  {EQUAL} equal"
BETWEEN = range(6, 17)  # cells from one tick to the next


@dataclass(frozen=True, slots=True)
class Rival:
    """Another service's offer to the same client."""

    service: int  # its place
    payment: Micro
    served: bool


class PriceAxis:
    """An axis from 0 that all bars of a table share."""

    def __init__(self, most: Micro, cells: int) -> None:
        """Make an axis of so many cells for money of at most so much."""
        self.cells = cells
        self._axis: Axis = axis(0.0, most / MICRO, cells, BETWEEN)

    def cell(self, amount: Micro) -> int:
        return min(self.cells - 1, int(amount / MICRO / self._axis.worth + 0.5))

    def ticks(self) -> str:
        """Return the labels of the axis, each with its middle above its place."""
        line = [" "] * self.cells
        for place, label in self._axis.ticks:
            begin = max(0, min(self.cells - len(label), place - (len(label) - 1) // 2))
            line[begin : begin + len(label)] = label
        return "".join(line)

    def bar(
        self,
        bid: Micro,
        offer: Micro | None,  # None if there is none
        service: int,  # its place
        rivals: Iterable[Rival],
        *,
        served: bool,
        asked: Style,  # how a bid is drawn
    ) -> Text:
        """Return the bar of an offer, else of the bid, from 0 on, with the bid and the signs of rivals at their offers.

        Prices that share a cell stand beside each other, the lower one at the left; ``=`` joins those that are equal.
        """
        mark, own = (SERVED if served else REFUSED, series_color(service)) if offer is not None else (NONE, asked)
        prices: dict[Micro, list[tuple[str, Style | str]]] = {bid: [(BID, asked)]}
        if offer is not None:
            prices.setdefault(offer, [(mark, own)])
        for rival in rivals:
            look = f"bold underline {series_color(rival.service)}" if rival.served else series_color(rival.service)
            if rival.payment in prices:
                prices[rival.payment] += (EQUAL, asked), (sign(rival.service), look)
            else:
                prices[rival.payment] = [(sign(rival.service), look)]
        begins, free = dict[Micro, int](), 0
        for price in sorted(prices):
            begins[price] = max(free, self.cell(price))
            free = begins[price] + len(prices[price])
        if free > self.cells:  # no room at the end: back from there
            free = self.cells
            for price in reversed(begins):
                free = begins[price] = min(begins[price], free - len(prices[price]))
        end = max(0, begins[bid] if offer is None else begins[offer] + 1)
        line = [mark] * end + [" "] * (self.cells - end)
        styles: dict[int, Style | str] = {}
        for price, marks in prices.items():
            for place, (character, style) in enumerate(marks, begins[price]):
                if place >= 0:
                    line[place], styles[place] = character, style
        spans, at = list[Span](), 0
        for place in sorted(styles):  # spans that do not overlap are drawn sooner
            if at < min(place, end):
                spans.append(Span(at, min(place, end), own))
            spans.append(Span(place, place + 1, styles[place]))
            at = place + 1
        if at < end:
            spans.append(Span(at, end, own))
        return Text("".join(line), end="", no_wrap=True, spans=spans)
