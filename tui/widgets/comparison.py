"""Runs compared, or the means of groups: the curves of one service, a table of all, and differences from a baseline."""

from collections.abc import Sequence
from math import nan

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize

from flmarket.analysis.results.report import Difference, Estimate
from tui.state.compared_runs import PolicyRuns, ServiceRow, band_series, difference_series, mean_series
from tui.state.watched_run import Session
from tui.style.colors import series_color, sign, tint
from tui.style.formats import TableColumn, plain, told_apart
from tui.style.sentences import CURVES, accuracy_words
from tui.widgets.plot import LONGEST
from tui.widgets.table_view import TableView
from tui.widgets.zoom import ZoomPlot

ROOMY = 22  # rows from which on the differences have a plot of their own
WIDE = 160  # columns from which on it stands at the right
BELOW = 0.1  # of what decides, the room below it
APART = 0.015  # of the width, from one interval to the next


class CompareCurves(Vertical):
    """The plots; each curve ends in the sign of its run or group. Uprights near the end are the last intervals."""

    def compose(self) -> ComposeResult:
        yield ZoomPlot()
        yield ZoomPlot()

    _drawn: object = None

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= WIDE, "wide")
        self.query(ZoomPlot).last().display = event.size.height >= ROOMY or event.size.width >= WIDE

    def show(
        self,
        sessions: Sequence[Session],  # the runs
        rounds: Sequence[int],
        service: str,
        metric: str,  # what to draw of the service
        groups: Sequence[PolicyRuns],  # of the runs; a run of its own is a group of one
        baseline: int,  # the place of the group that differences are from
    ) -> None:
        """Draw the mean of a service's metric in each group of runs, each run up to its round."""
        values, differences = self.query(ZoomPlot)
        over = tuple(session.over for session in sessions)
        drawn = (tuple(rounds), over, service, metric, self.app.theme, tuple(groups), baseline, values.window)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        words = CURVES.get(metric) or f"{accuracy_words(session.scenario for session in sessions)} %"
        values.border_title = f"{service}: {words} (tab: next service, v: next curve)"
        differences.border_title = f"Δ: difference from {sign(baseline)} {groups[baseline].name} (b: next baseline)"
        scale = 100 if metric == "test_accuracy" else 1
        for plot in (values, differences):
            first, last = plot.show(max(10, *rounds))
        rounds = [min(last, n) for n in rounds]
        of = [[run for run in group.runs if rounds[run] and service in _services(sessions[run])] for group in groups]
        played = [([sessions[run] for run in runs], [rounds[run] for run in runs]) for runs in of]
        means = [mean_series(*group, service, metric, first) for group in played]
        targets = _targets(sessions, rounds, service) if metric == "test_accuracy" else []
        late = (first + max(rounds)) / 2  # later rounds decide, and ends: the axis begins a little below them
        decides = [y for xs, ys in means for x, y in zip(xs, ys, strict=True) if x >= late or x == xs[-1]]
        decides += targets if decides else [0.0]
        low, high = min(decides), max(decides)
        floor = low - BELOW * max(high - low, BELOW * high)
        values.begin(last, scale * floor, first=first)
        for target in targets:
            label = f"{100 * target:.4g}"
            values.level(100 * target, label, str(tint(self.app, "foreground")))
            # As much room at the right, so that the rounds of both plots stand below each other.
            differences.level(0, " " * len(label), series_color(baseline))
        names = told_apart([group.name for group in groups], LONGEST)
        for place, runs in enumerate(of):
            xs, *ends = band_series(*played[place], service, metric, first, points=1)
            if xs:  # beside each other, before the end
                beside = max(first, xs[-1] - APART * (last - first) * (len(of) - place))
                values.curve([beside] * 2, [scale * end[-1] for end in ends], series_color(place))
            xs, ys = means[place]
            look = (series_color(place), sign(place), names[place])
            values.curve(xs, [scale * y if y >= floor else nan for y in ys], *look)
            if runs and of[baseline]:
                xs, ys = difference_series(sessions, rounds, runs, of[baseline], service, metric, first)
                differences.curve(xs, [scale * y for y in ys], *look)


def _services(session: Session) -> list[str]:
    return [service.name for service in session.scenario.services] if session.scenario else []


def _targets(sessions: Sequence[Session], rounds: Sequence[int], service: str) -> list[float]:
    rows = [row for session, n in zip(sessions, rounds, strict=True) if n for row in session.history[n].services]
    return list(dict.fromkeys(row.target_accuracy for row in rows if row.service == service))


DELTA = "Δ "  # stands before the key of a difference's column


class CompareTable(TableView):
    """The rows; the cursor stays on the service and the group that it is on."""

    COLUMNS = (
        TableColumn("sign", "#"),
        TableColumn("run", "run", least=20, leaves=7, brief=12),
        TableColumn("service", "service", least=10),
        TableColumn("policy", "policy", leaves=1),
        TableColumn("final accuracy", "accuracy %", right=True, leaves=8, brief=10),
        TableColumn(DELTA + "final accuracy", "Δ", right=True),
        TableColumn("rounds to target", "target met in", right=True, leaves=9),
        TableColumn(DELTA + "rounds to target", "Δ", right=True, leaves=5),
        TableColumn("spent", "spent", right=True, leaves=6),
        TableColumn(DELTA + "spent", "Δ", right=True, leaves=4),
        TableColumn("served", "served", right=True, leaves=3),
        TableColumn("refused", "refused", right=True, leaves=2),
    )

    _shown: Sequence[ServiceRow] = ()
    _names: Sequence[str] = ()

    def show(self, rows: Sequence[ServiceRow], names: Sequence[str]) -> None:
        """Show one row for each service and group of runs; ``names`` are those of the groups."""
        chosen = _key(self._shown[self.cursor]) if self._shown else None
        self._shown, self._names = rows, names
        self.rows(len(rows))
        self.cursor = next((place for place, row in enumerate(rows) if _key(row) == chosen), self.cursor)

    @property
    def place(self) -> int | None:
        """The place of the chosen row's group; None if there is no row."""
        return self._shown[self.cursor].group if self._shown else None

    def cells(self, index: int) -> Sequence[Text]:
        row = self._shown[index]
        color = series_color(row.group)
        cells = {
            "sign": plain(sign(row.group), color),
            "run": plain(self._names[row.group], color),
            "service": plain(row.service),
            "policy": plain(row.policy),
            **{name: plain(_text(mean)) for name, mean in row.means.items()},
            **{DELTA + name: plain(_text(it), self._color(it)) for name, it in row.differences.items()},
        }
        if row.differences:
            cells[DELTA + "final accuracy"].append(row.common)
        if cells["rounds to target"].plain == "never" and not row.over:
            cells["rounds to target"] = plain("not yet")
        return [cells.get(column.key) or plain("") for column in self.COLUMNS]

    def line(self, index: int) -> tuple[Text, Text]:
        """Return a row. A mean whose interval has no room stands alone: that of the difference decides."""
        keys = [column.key for column in self.columns]
        row = [
            cell if key.startswith(DELTA) or cell.cell_len <= self._widths.get(key, 0) else cell.split(" [")[0]
            for key, cell in zip(keys, self._row(index), strict=True)
        ]
        at = keys.index("run")
        group = self._shown[index].group
        row[at] = plain(told_apart(self._names, self._widths["run"])[group], row[at].style)
        return Text(end=""), self._joined(row)

    def _color(self, difference: Difference) -> Style:
        interval = difference.interval
        better = interval.estimate * difference.measure.better if interval.excludes_zero else 0
        return tint(self.app, "foreground" if not better else ("success" if better > 0 else "error"))


def _text(mean: Estimate | Difference) -> str:
    """Return a mean as reports show it; a count of a single run has no decimals, and what both missed is not known."""
    if isinstance(mean, Difference) and mean.bound == "?":
        return ""
    return mean.text.removesuffix(".0") if mean.seeds == 1 else mean.text


def _key(row: ServiceRow) -> tuple[str, int]:
    return row.service, row.group
