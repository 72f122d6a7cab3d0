"""One service's curves in several runs, or the means of groups of runs, in one plot."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container

from tui.state.comparison import band_series, mean_series
from tui.state.watched_run import Session
from tui.style.colors import faint_color, series_color, sign, tint
from tui.style.market_words import CURVES, accuracy_words
from tui.widgets.plot import Plot


class CompareCurves(Container):
    """The plot; each curve ends in the sign of its run or group. Faint curves are the ends of a mean's interval."""

    def compose(self) -> ComposeResult:
        yield Plot()

    def on_mount(self) -> None:
        self._drawn: object = None

    def show(
        self,
        sessions: Sequence[Session],  # the runs
        rounds: Sequence[int],
        service: str,
        metric: str,  # what to draw of the service
        groups: Sequence[Sequence[int]],  # the places of each group's runs; a run of its own is a group of one
    ) -> None:
        """Draw the mean of a service's metric in each group of runs, each run up to its round."""
        plot = self.query_one(Plot)
        over = tuple(session.over for session in sessions)
        drawn = (tuple(rounds), over, service, metric, self.app.theme, tuple(map(tuple, groups)), plot.size)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        words = CURVES.get(metric) or f"{accuracy_words(session.scenario for session in sessions)} %"
        self.border_title = f"{service}: {words} (tab: next service, v: next curve)"
        scale = 100 if metric == "test_accuracy" else 1
        plot.begin(max(10, *rounds))
        for target in _targets(sessions, rounds, service) if metric == "test_accuracy" else ():
            plot.level(100 * target, f"{100 * target:.4g}", str(tint(self.app, "foreground")))
        of = [[run for run in group if rounds[run] and service in _services(sessions[run])] for group in groups]
        for place, runs in enumerate(of):  # behind all curves
            xs, *ends = band_series([sessions[run] for run in runs], [rounds[run] for run in runs], service, metric)
            for end in ends:
                plot.curve(xs, [scale * y for y in end], faint_color(place))
        for place, runs in enumerate(of):
            xs, ys = mean_series([sessions[run] for run in runs], [rounds[run] for run in runs], service, metric)
            plot.curve(xs, [scale * y for y in ys], series_color(place), sign(place))


def _services(session: Session) -> list[str]:
    return [service.name for service in session.scenario.services] if session.scenario else []


def _targets(sessions: Sequence[Session], rounds: Sequence[int], service: str) -> list[float]:
    rows = [row for session, n in zip(sessions, rounds, strict=True) if n for row in session.history[n].services]
    return list(dict.fromkeys(row.target_accuracy for row in rows if row.service == service))
