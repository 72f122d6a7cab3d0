"""One service's curves in several runs, in one plot."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container
from textual_plot import HiResMode

from tui.watching.session import Session
from tui.widgets.curves import TITLES
from tui.widgets.look import series_color, sign
from tui.widgets.plot import Plot


class CompareCurves(Container):
    """The plot; each curve ends in its run's sign."""

    def compose(self) -> ComposeResult:
        """Lay out the plot."""
        yield Plot()

    def on_mount(self) -> None:
        """Begin with nothing drawn."""
        self._drawn: object = None

    def show(self, sessions: Sequence[Session], rounds: Sequence[int], service: str, metric: str) -> None:
        """Draw a metric of a service in all runs, each up to its round."""
        drawn = (tuple(rounds), service, metric, self.app.theme)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self.border_title = f"{service}: {TITLES[metric].split(',')[0]} (tab: next service, v: next curve)"
        plot = self.query_one(Plot)
        scale = 100 if metric == "accuracy" else 1
        with self.app.batch_update():
            plot.clear()
            plot.set_xlimits(1, max(10, *rounds, 10))
            plot.set_ylimits(0, 100 if metric == "accuracy" else None)
            for place, (session, number) in enumerate(zip(sessions, rounds, strict=True)):
                names = [row.service for row in session.history[number].services] if number else []
                if service not in names:
                    continue
                xs, ys = session.history.series(names.index(service), metric, number)
                values = [scale * y for y in ys]
                if xs:
                    plot.plot(xs, values, line_style=series_color(place), hires_mode=HiResMode.BRAILLE)
                    plot.end(xs[-1], values[-1], sign(place), f"bold {series_color(place)}")
