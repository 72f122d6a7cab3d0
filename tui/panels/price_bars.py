"""Money as bars on one axis: what a client asks, what a service offers, and what its rivals do.

Whatever colours show, characters show too: a solid bar was served, a broken one was not, and rivals have their signs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.style import Style
from rich.text import Span, Text

from des.money import MICRO, Micro
from tui.style.colors import series_color, sign
from tui.widgets.plot import Axis, axis

BID, SERVED, REFUSED = "│", "━", "╌"
LEGEND = f"{BID} bid  {SERVED} served  {REFUSED} not served  1 2 … rivals"
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
        """Return the bar of an offer from 0 on, with the bid, and the signs of the rivals at their offers.

        Where two stand in one cell, the next free one is taken.
        """
        end = 0 if offer is None else self.cell(offer) + 1
        line = [SERVED if served else REFUSED] * end + [" "] * (self.cells - end)
        marks: list[tuple[int, str, Style | str]] = [(self.cell(bid), BID, asked)]
        for rival in sorted(rivals, key=lambda rival: rival.payment):
            look = f"bold underline {series_color(rival.service)}" if rival.served else series_color(rival.service)
            marks.append((self.cell(rival.payment), sign(rival.service), look))
        styles: dict[int, Style | str] = {}
        for place, mark, style in marks:
            while place in styles:
                place += 1
            if place < self.cells:
                line[place], styles[place] = mark, style
        spans, at, own = list[Span](), 0, series_color(service)
        for place in sorted(styles):  # spans that do not overlap are drawn sooner
            if at < min(place, end):
                spans.append(Span(at, min(place, end), own))
            spans.append(Span(place, place + 1, styles[place]))
            at = place + 1
        if at < end:
            spans.append(Span(at, end, own))
        return Text("".join(line), end="", no_wrap=True, spans=spans)
