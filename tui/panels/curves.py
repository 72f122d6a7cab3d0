"""Curves over the rounds: accuracy with targets, reward, spend or price."""

from collections.abc import Sequence
from math import isnan

import numpy as np
from numpy.typing import NDArray
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.widget import Widget

from scenarios.logs.reading import STALENESS
from tui.panels.panel import Panel
from tui.state.history import METRICS
from tui.state.moment import Moment
from tui.style.colors import FEW_IN_COLOR, in_color, series_color, sign, tint
from tui.style.formats import TableColumn, plain
from tui.style.sentences import CURVES, accuracy_words
from tui.widgets.line_view import copy
from tui.widgets.table_view import TableView
from tui.widgets.zoom import ZOOM, Zooming, ZoomPlot, room

ROOMY, ROUNDS = 60, 20  # cells and rows from which on there is a table beside the plot
MOST_TARGETS = 4  # with more services than this, only the chosen one's target is drawn


class CurveArea(Container, can_focus=True):
    """The area around the plot, which has its keys."""

    BINDINGS = [Binding("v", "screen.next_metric", "Next curve")]

    def compose(self) -> ComposeResult:
        yield ZoomPlot()
        yield HistoryTable()


class HistoryTable(TableView, can_focus=False):
    """The chosen service's numbers in the round that is shown and in those before it, the newest first."""

    COLUMNS = (
        TableColumn("round", "round", right=True),
        TableColumn("accuracy", "acc. %", right=True),
        TableColumn("spent", "spend", right=True),
    )

    _last = 0
    _numbers: Sequence[NDArray[np.float64]] = ()  # of each column but the first, by round

    def show(self, view: Moment, last: int) -> None:
        """Show a service's rounds up to the last one."""
        history = view.session.history
        self._last = last
        self._numbers = [history.column(column.key, last)[:, view.service] for column in self.COLUMNS[1:]]
        self.rows(last)

    def cells(self, index: int) -> Sequence[Text]:
        number = self._last - index
        accuracy, *money = (column[number - 1] for column in self._numbers)
        words = (f"{number}", *(f"{value:.2f}" for value in (100 * accuracy, *money)))
        return [plain("–" if cell == "nan" else cell) for cell in words]


class CurvesPanel(Panel, Zooming):
    """One curve for each service, up to the round that is shown."""

    BINDINGS = [
        Binding("y", "copy(False)", "Copy", tooltip="Copy the numbers of the round", show=False),
        Binding("Y", "copy(True)", "Copy all", tooltip="Copy the numbers of all rounds up to this one", show=False),
        *ZOOM,
    ]
    NUMBER = 2
    NAME = "Curves"
    HELP = """How each service has done, round by round, up to the round that is shown.

[b]v[/b]  next curve: accuracy (with targets), reward, spend, price; where work outlasts rounds, staleness.
[b]z[/b], [b]Z[/b]  zoom in around the round shown; all rounds again.

Each curve ends in its service's sign in panel 1, and in its name where there is room. The upright line is the round
shown. Accuracy is the one by which services leave, as in panel 1. The dotted lines are the targets; with more than four
services, only the chosen one's is drawn. The axis shows the range of what is drawn, and need not begin at 0. The price
has gaps where a service hired no client. Of more than ten services the chosen one and the five of the highest accuracy
have colours and names, and the rest are grey."""

    def __init__(self) -> None:
        super().__init__()
        self.metric = METRICS[0]
        self._drawn: object = None

    def compose(self) -> ComposeResult:
        yield CurveArea(id="curve-area")

    @property
    def target(self) -> Widget:
        return self.query_one(CurveArea)

    @on(ZoomPlot.Zoomed)
    def _zoomed(self) -> None:
        self.redraw()

    def on_resize(self) -> None:
        wide, high = self.size
        self.query_one(HistoryTable).display = wide >= ROOMY and high >= ROUNDS

    def next_metric(self) -> None:
        goes_on = self.view is not None and self.view.begun and self.view.logged.goes_on
        metrics = (*METRICS, STALENESS) if goes_on else METRICS
        self.metric = metrics[(metrics.index(self.metric) + 1) % len(metrics)]
        self.redraw()

    @property
    def _scale(self) -> int:
        return 100 if self.metric == "accuracy" else 1

    def action_copy(self, every: bool) -> None:
        """Copy what the curves show: the services' numbers in the round, or in every one, as a table."""
        if self.view is None or not (last := _last(self.view)):
            return
        names = [row.service for row in self.view.logged.services]
        values = self._scale * self.view.session.history.column(self.metric, last)
        rounds = [[str(n), *("" if isnan(v) else f"{v:.6g}" for v in row)] for n, row in enumerate(values.tolist(), 1)]
        copy(self.app, map("\t".join, [["round", *names], *rounds] if every else rounds[-1:]))

    def draw(self, view: Moment) -> None:
        # Runs that hold out no validation images go by the accuracy on test images.
        words = "validation accuracy" if view.split else accuracy_words([view.scenario])
        self.entitle(CURVES.get(self.metric, f"{words} %, ┄ targets"))
        last = _last(view)
        plot, table = self.query_one(ZoomPlot), self.query_one(HistoryTable)
        drawn = (last, view.service, self.metric, self.app.theme, plot.window, table.display)
        if drawn == self._drawn or not self.display:
            return
        self._drawn = drawn
        plot.grid = table.display
        if table.display:
            table.show(view, last)
        rows = view.logged.services
        whole = room(view.round)
        first, end = plot.show(whole if view.scenario is None else min(view.scenario.rounds, whole), at=last)
        if last:
            plot.playhead(last, tint(self.app, "accent"))
        history = view.session.history
        shown = in_color(history.column("accuracy", last)[-1].tolist() if last else [], view.service)
        few = FEW_IN_COLOR if len(shown) < len(rows) and last else ""
        if few != self.border_subtitle:
            self.border_subtitle = few
        grey = str(tint(self.app, "foreground", dim=True))
        for m in range(len(rows)):
            color = series_color(m)
            if self.metric == "accuracy" and (len(rows) <= MOST_TARGETS or m == view.service):
                target = 100 * rows[m].target_accuracy
                plot.level(target, f"{sign(m)} {target:.4g}", color)
            # A point to a cell is as fine as the eye tells; more would be computed and not seen.
            xs, ys = history.series(m, self.metric, min(last, end), max(20, plot.size.width), first)
            look = (color, sign(m), rows[m].service) if m in shown else (grey,)
            plot.curve(xs, [self._scale * y for y in ys], *look, chosen=m == view.service)


def _last(view: Moment) -> int:
    """Return the last round whose results are known: in a walk through a round, the one before."""
    return view.round if view.event is None else view.round - 1
