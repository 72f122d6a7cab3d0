"""The widgets of the training screen: the learning curve with the levels of heuristics, and the agent's preferences."""

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Container

from flmarket.core.text import duration
from scenarios.logs.run_state import RunState
from tui.state.training_log import EvaluatedService, TrainingFeed, TrainingPoint
from tui.style.colors import series_color, sign, signed, state_style, tint
from tui.style.formats import TableColumn, blocks, per_second, plain
from tui.widgets.table_view import TableView
from tui.widgets.zoom import ZoomPlot

TITLES = {
    "auc": "mean accuracy over all rounds (AUC)",
    "reward": "mean reward, as a part of that at the target,",
    "reached": "share of services that met their target",
    "markup": "offers above the bids, as a part of them",
}
LEVELS = 20  # the place of the first level's colour: far from those of the first curves


class LearningCurves(Container):
    """The evaluations of each training over its episodes; of a single one, the episodes too, dimmed."""

    def compose(self) -> ComposeResult:
        yield ZoomPlot()

    _drawn: object = None

    def show(self, feeds: Sequence[TrainingFeed], metric: str, chosen: int) -> None:
        """Draw a metric of all trainings."""
        plot = self.query_one(ZoomPlot)
        lengths = tuple((len(feed.episodes), len(feed.evaluations), feed.total) for feed in feeds)
        levels = feeds[chosen].baselines if feeds else {}
        drawn = (lengths, metric, chosen, len(levels), self.app.theme, plot.size, plot.window)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self.border_title = f"{TITLES[metric]} in evaluations (v: next)"
        known = {name: values[metric] for name, values in levels.items() if metric in values}
        ends = [feed.total or 0 for feed in feeds] + [len(feed.episodes) for feed in feeds]
        window = plot.show(max([10, *ends]))
        shown = [_series(feed.evaluations, metric, window) for feed in feeds]
        played = _series(feeds[0].episodes, metric, window) if len(feeds) == 1 else ([], [])
        for place, (name, y) in enumerate(known.items()):
            plot.level(y, name, series_color(LEVELS + 1 + place))
        plot.curve(*played, str(tint(self.app, "foreground", dim=True)))
        for place, (xs, ys) in enumerate(shown):
            plot.curve(xs, ys, series_color(place), sign(place), feeds[place].name)
        self.border_subtitle = legend(feeds[chosen], metric) if feeds else ""


def legend(feed: TrainingFeed, metric: str) -> str:
    """Return the last evaluation and the baselines in words."""
    known = [(name, values[metric]) for name, values in feed.baselines.items() if metric in values]
    parts = [f"┄ {name} {value:.4f}" for name, value in known]
    if feed.evaluations:
        parts.insert(0, f"{feed.name} {feed.evaluations[-1].values[metric]:.4f}")
    return "  ".join(parts)


def _series(points: Sequence[TrainingPoint], metric: str, window: tuple[int, int]) -> tuple[list[float], list[float]]:
    shown = [point for point in points if window[0] <= point.episode <= window[1]]
    return [float(point.episode) for point in shown], [point.values[metric] for point in shown]


class TrainingTable(TableView):
    """A line for each training."""

    COLUMNS = (
        TableColumn("sign", "#"),
        TableColumn("name", "agent"),
        TableColumn("state", "state"),
        TableColumn("episode", "episode", True),
        TableColumn("rate", "episodes/s", True, leaves=1),
        TableColumn("left", "left", True),
        TableColumn("auc", "AUC", True),
        TableColumn("what", "what is trained"),
    )

    _feeds: Sequence[TrainingFeed] = ()

    def show(self, feeds: Sequence[TrainingFeed]) -> None:
        self._feeds = feeds
        self.rows(len(feeds))

    def cells(self, index: int) -> Sequence[Text]:
        feed = self._feeds[index]
        rate = feed.pace.rate() if feed.state is RunState.RUNNING else None
        color = series_color(index)
        return [
            plain(sign(index), color),
            plain(feed.name, color),
            plain(signed(feed.state), state_style(self.app, feed.state)),
            plain(f"{len(feed.episodes)}/{'?' if feed.total is None else feed.total}"),
            plain("" if rate is None else per_second(rate)),
            plain("" if feed.left is None else duration(feed.left)),
            plain(f"{feed.evaluations[-1].values['auc']:.4f}" if feed.evaluations else ""),
            plain(feed.what),
        ]


class PreferenceTable(TableView):
    """An agent's behaviour in its last evaluation, service by service, next to that in its first."""

    COLUMNS = (
        TableColumn("service", "service"),
        TableColumn("offers", "clients a round", True),
        TableColumn("served", "served %", True),
        TableColumn("markup", "markup %", True, 2),
        TableColumn("bids", "bids: low to high"),
        TableColumn("dqis", "DQI: low to high"),
    )

    _rows: Sequence[tuple[EvaluatedService, EvaluatedService]] = ()  # of each service, the last and the first

    def show(self, feed: TrainingFeed) -> None:
        """Show a training's newest preferences."""
        newest = max((service.episode for service in feed.preferences), default=0)
        first = {service.service: service for service in reversed(feed.preferences)}
        oldest = min((service.episode for service in feed.preferences), default=0)
        before = TableColumn("before", f"after episode {oldest}" if oldest < newest else "", leaves=1)
        self.columns = (*self.COLUMNS, before)
        self._rows = [(last, first[last.service]) for last in feed.preferences if last.episode == newest]
        self.rows(len(self._rows))

    @property
    def chosen(self) -> EvaluatedService | None:
        return self._rows[self.cursor][0] if self.cursor < len(self._rows) else None

    def cells(self, index: int) -> Sequence[Text]:
        now, first = self._rows[index]
        before = f"bids {bars(first.bids)}  DQI {bars(first.dqis)}"
        return [
            plain(now.service),
            plain(f"{now.offers:.1f}"),
            plain("" if now.served is None else f"{100 * now.served:.0f}"),
            plain("" if now.markup is None else f"{100 * now.markup:+.1f}"),
            plain(bars(now.bids)),
            plain(bars(now.dqis)),
            plain(before if first is not now else ""),
        ][: len(self.columns)]


def bars(shares: Sequence[float]) -> str:
    """Return a bar for each share, of 1 at most; every second cell is empty, which separates them."""
    return " ".join(blocks(shares))


def in_words(evaluated: EvaluatedService) -> str:
    """Return a service's preferences in a sentence."""
    name, bids, dqis = evaluated.service, evaluated.bids, evaluated.dqis
    if not bids or not dqis:
        return f"{name} makes no offers."
    bid, dqi = bids.index(max(bids)), dqis.index(max(dqis))
    return (
        f"{name}: {100 * bids[bid]:.0f} % of its offers go to the {_FIFTHS[bid]} fifth of clients by bid, "
        f"{100 * dqis[dqi]:.0f} % to the {_FIFTHS[dqi]} fifth by DQI (evaluation after episode {evaluated.episode})."
    )


_FIFTHS = ("lowest", "second", "middle", "fourth", "highest")
