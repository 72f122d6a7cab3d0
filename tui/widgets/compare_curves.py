"""One service's curves in several runs, or the means of groups of runs, and their differences from the baseline."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize

from tui.state.compared_runs import PolicyRuns, band_series, difference_series, mean_series
from tui.state.watched_run import Session
from tui.style.colors import faint_color, series_color, sign, tint
from tui.style.event_sentences import CURVES, accuracy_words
from tui.widgets.zoom import ZoomPlot

ROOMY = 22  # rows from which on the differences have a plot of their own


class CompareCurves(Vertical):
    """The plots; each curve ends in the sign of its run or group. Faint curves are the ends of a mean's interval."""

    def compose(self) -> ComposeResult:
        yield ZoomPlot()
        yield ZoomPlot()

    def on_mount(self) -> None:
        self._drawn: object = None

    def on_resize(self, event: Resize) -> None:
        self.query(ZoomPlot).last().display = event.size.height >= ROOMY

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
        for target in _targets(sessions, rounds, service) if metric == "test_accuracy" else ():
            label = f"{100 * target:.4g}"
            values.level(100 * target, label, str(tint(self.app, "foreground")))
            # As much room at the right, so that the rounds of both plots stand below each other.
            differences.level(0, " " * len(label), series_color(baseline))
        of = [[run for run in group.runs if rounds[run] and service in _services(sessions[run])] for group in groups]
        played = [([sessions[run] for run in runs], [rounds[run] for run in runs]) for runs in of]
        for place, group in enumerate(played):  # behind all curves
            xs, *ends = band_series(*group, service, metric, first)
            for end in ends:
                values.curve(xs, [scale * y for y in end], faint_color(place))
        for place, runs in enumerate(of):
            xs, ys = mean_series(*played[place], service, metric, first)
            look = (series_color(place), sign(place), groups[place].name)
            values.curve(xs, [scale * y for y in ys], *look)
            if runs and of[baseline]:
                xs, ys = difference_series(sessions, rounds, runs, of[baseline], service, metric, first)
                differences.curve(xs, [scale * y for y in ys], *look)


def _services(session: Session) -> list[str]:
    return [service.name for service in session.scenario.services] if session.scenario else []


def _targets(sessions: Sequence[Session], rounds: Sequence[int], service: str) -> list[float]:
    rows = [row for session, n in zip(sessions, rounds, strict=True) if n for row in session.history[n].services]
    return list(dict.fromkeys(row.target_accuracy for row in rows if row.service == service))
