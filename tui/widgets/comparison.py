"""Runs compared, or the means of groups: the curves of one service, a table of all, and differences from a baseline."""

from collections.abc import Mapping, Sequence
from math import inf, nan

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize

from flmarket.analysis.results.report import Difference, Estimate
from tui.state.compared_runs import Mean, PolicyRuns, ServiceRow, band_series, difference_series, mean_series, parting
from tui.state.watched_run import Session
from tui.style.colors import FEW_IN_COLOR, in_color, sign, tint
from tui.style.formats import TableColumn, plain, told_apart
from tui.style.sentences import CURVES, accuracy_words
from tui.widgets.plot import LONGEST
from tui.widgets.table_view import TableView
from tui.widgets.zoom import ZoomPlot, room

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
        colors: Sequence[str],  # of the groups
        baseline: int,  # the place of the group that differences are from
        chosen: int | None,  # that of the chosen row's group
    ) -> None:
        """Draw the mean of a service's metric in each group of runs, each run up to its round."""
        values, differences = self.query(ZoomPlot)
        over = tuple(session.over for session in sessions)
        drawn = (
            tuple(rounds),
            over,
            service,
            metric,
            self.app.theme,
            tuple(groups),
            tuple(colors),
            baseline,
            chosen,
            values.window,
        )
        if drawn == self._drawn:
            return
        self._drawn = drawn
        differences.border_title = f"Δ: difference from {sign(baseline)} {groups[baseline].name} (b: next baseline)"
        scale = 100 if metric == "test_accuracy" else 1
        part = parting(sessions)
        newest = max([*rounds, part[0] if part else 0])
        whole = max(10, newest) if all(over) else min(_most(sessions), room(newest))
        for plot in (values, differences):
            first, last = plot.show(whole)
        rounds = [min(last, n) for n in rounds]
        of = [[run for run in group.runs if rounds[run] and service in _services(sessions[run])] for group in groups]
        played = [([sessions[run] for run in runs], [rounds[run] for run in runs]) for runs in of]
        means = [mean_series(*group, service, metric, first) for group in played]
        pairs = [difference_series(sessions, rounds, runs, of[baseline], service, metric, first) for runs in of]
        # Later rounds decide, and ends; of forks, all from the round before they part.
        late = min((first + max(rounds)) / 2, part[0] - 1 if part else inf)
        low, high = _range(means, late)
        targets = _targets(sessions, rounds, service) if metric == "test_accuracy" else []
        # Beside a target that is farther away than the curves are high they would be flat.
        reach = max(high - low, BELOW * high)
        near = [target for target in targets if low - reach <= target <= high + reach]
        far = [f"{100 * it:.4g} {'above' if it > high else 'below'}" for it in targets if it not in near]
        words = CURVES.get(metric) or f"{accuracy_words(session.scenario for session in sessions)} %"
        words += f", target {' and '.join(far)}" if far else ""
        values.border_title = f"{service}: {words} (tab: next service, v: next curve)"
        low, high = min([low, *near]), max([high, *near])
        floor = low - BELOW * max(high - low, BELOW * high)
        values.begin(last, scale * floor, first=first)
        for target in near:
            label = f"{100 * target:.4g}"
            values.level(100 * target, label, str(tint(self.app, "foreground")))
            # As much room at the right, so that the rounds of both plots stand below each other.
            differences.level(0, " " * len(label), colors[baseline])
        names = told_apart([group.name for group in groups], LONGEST)
        accuracies = [mean_series(*group, service, "test_accuracy", max(1, last))[1] for group in played]
        shown = in_color([ys[-1] if ys else nan for ys in accuracies], baseline, baseline if chosen is None else chosen)
        values.border_subtitle = f"{FEW_IN_COLOR}, and the baseline" if len(shown) < len(groups) else ""
        grey = str(tint(self.app, "foreground", dim=True))
        looks = [(colors[n], sign(n), name) if n in shown else (grey,) for n, name in enumerate(names)]
        for place, group in enumerate(played):
            xs, *ends = band_series(*group, service, metric, first, points=1)
            if xs and place in shown:  # beside each other, before the end
                beside = max(first, xs[-1] - APART * (last - first) * (len(of) - place))
                values.curve([beside] * 2, [scale * end[-1] for end in ends], colors[place])
        least, most = _range(pairs, late)
        slack = (most - least) / 2  # a curve begins where it is at last not far from what decides
        limits = {values: (floor, high + reach / 2), differences: (least - slack, most + slack)}
        for plot, curves in ((values, means), (differences, pairs)):
            if part and first <= part[0] <= last:
                plot.playhead(part[0], tint(self.app, "accent"), f"round {part[0]}: {part[1]}")
            for place, (xs, ys) in enumerate(curves):
                plot.curve(xs, [scale * y for y in _within(ys, *limits[plot])], *looks[place])


def _range(curves: Sequence[tuple[Sequence[float], Sequence[float]]], late: float) -> tuple[float, float]:
    """Return the limits of the values that curves have from a round on, and of their last ones; 0 if there is none."""
    decides = [y for xs, ys in curves for x, y in zip(xs, ys, strict=True) if x >= late or x == xs[-1]]
    return min(decides, default=0.0), max(decides, default=0.0)


def _within(ys: Sequence[float], low: float, high: float) -> list[float]:
    """Return a curve's values after the last one that is outside of limits; NaN for those before."""
    begin = max((place + 1 for place, y in enumerate(ys) if not low <= y <= high), default=0)
    return [nan] * begin + list(ys[begin:])


def _most(sessions: Sequence[Session]) -> int:
    """Return how many rounds the longest run may have."""
    return max((session.scenario.rounds for session in sessions if session.scenario), default=10)


def _services(session: Session) -> list[str]:
    return [service.name for service in session.scenario.services] if session.scenario else []


def _targets(sessions: Sequence[Session], rounds: Sequence[int], service: str) -> list[float]:
    rows = [row for session, n in zip(sessions, rounds, strict=True) if n for row in session.history[n].services]
    return list(dict.fromkeys(row.target_accuracy for row in rows if row.service == service))


LEFT_OUT = " …"  # ends the titles where columns find no room
DELTA = "Δ "  # stands before the key of a difference's column


class CompareTable(TableView):
    """The rows; the cursor stays on the service and the group that it is on."""

    COLUMNS = (
        TableColumn("sign", "#"),
        TableColumn("run", "run", least=20, leaves=8, brief=12),
        TableColumn("service", "service", least=10),
        TableColumn("policy", "policy", leaves=1),
        TableColumn("AUC", "AUC %", right=True, leaves=9, brief=8),
        TableColumn(DELTA + "AUC", "Δ", right=True),
        TableColumn("rounds to target", "target met in", right=True, leaves=11),
        TableColumn(DELTA + "rounds to target", "Δ", right=True, leaves=7),
        TableColumn("final accuracy", "accuracy %", right=True, leaves=10),
        TableColumn(DELTA + "final accuracy", "Δ", right=True, leaves=5),
        TableColumn("spent", "spent", right=True, leaves=6),
        TableColumn(DELTA + "spent", "Δ", right=True, leaves=4),
        TableColumn("served", "served", right=True, leaves=3),
        TableColumn("refused", "refused", right=True, leaves=2),
    )
    SPARE = len(LEFT_OUT)

    _shown: Sequence[ServiceRow] = ()
    _names: Sequence[str] = ()
    _colors: Sequence[str] = ()

    def show(self, rows: Sequence[ServiceRow], names: Sequence[str], colors: Sequence[str]) -> None:
        """Show one row for each service and group of runs; ``names`` and ``colors`` are those of the groups."""
        chosen = _key(self._shown[self.cursor]) if self._shown else None
        self._shown, self._names, self._colors = rows, names, colors
        self.rows(len(rows))
        self.cursor = next((place for place, row in enumerate(rows) if _key(row) == chosen), self.cursor)

    @property
    def place(self) -> int | None:
        """The place of the chosen row's group; None if there is no row."""
        return self._shown[self.cursor].group if self._shown else None

    def cells(self, index: int) -> Sequence[Text]:
        row = self._shown[index]
        color = self._colors[row.group]
        cells = {
            "sign": plain(sign(row.group), color),
            "run": plain(self._names[row.group], color),
            "service": plain(row.service),
            "policy": plain(row.policy),
            **{name: plain(_text(mean)) for name, mean in _timed(row.means).items()},
            **{DELTA + name: plain(_text(it), self._color(it)) for name, it in _timed(row.differences).items()},
        }
        if row.differences:
            cells[DELTA + "AUC"].append(row.common)
        if cells["rounds to target"].plain == "never" and not row.over:
            cells["rounds to target"] = plain("not yet")
        return [cells.get(column.key) or plain("") for column in self.COLUMNS]

    def head(self) -> tuple[Text, Text]:
        gutter, titles = super().head()
        return gutter, titles.append(LEFT_OUT) if len(self._widths) < len(self.columns) else titles

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


def _timed(means: Mapping[str, Mean]) -> Mapping[str, Mean]:
    """Return means with the seconds to target, where there are any, in the place of the rounds."""
    seconds = means.get("seconds to target")
    return means if seconds is None else {**means, "rounds to target": seconds}


def _text(mean: Estimate | Difference) -> str:
    """Return a mean as reports show it; a count of a single run has no decimals, and what both missed is not known."""
    if isinstance(mean, Difference) and mean.bound == "?":
        return ""
    unit = " s" * (mean.measure.name == "seconds to target")
    text = mean.text + unit if isinstance(mean, Difference) else mean.mean(mean.ends + unit)
    return text.replace(f".0{unit}", unit) if mean.seeds == 1 and text.endswith(f".0{unit}") else text


def _key(row: ServiceRow) -> tuple[str, int]:
    return row.service, row.group
