"""The training screen: trainings of MAHDRL, followed by their files while ``flmarket train`` writes them."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from flmarket.core.text import counted
from scenarios.logs.run_state import RunState
from tui.screens.following_files import FollowingScreen
from tui.state.training_log import METRICS, TrainingFeed
from tui.style.colors import tint
from tui.style.formats import plain
from tui.style.key_names import named
from tui.widgets.key_bar import KeyBar
from tui.widgets.table_view import TableView
from tui.widgets.training_chart import LearningCurves, PreferenceTable, TrainingTable, in_words
from tui.widgets.zoom import MOVE, ZOOM, Zooming, ZoomPlot

NO_BASELINES = "no levels: they are recorded where the training plays the surrogate"


class TrainingScreen(FollowingScreen[Sequence[object]], Zooming):
    """Shows the learning curves of one training or of several, and what the chosen one's agent prefers."""

    BINDINGS = named(
        "training",
        [
            Binding("v", "next_metric", "Next curve: Show the next curve: AUC, reward, targets met, markup"),
            *ZOOM,
            *MOVE,
            Binding("tab", "app.focus_next", "Next table: Go to the other table"),
            Binding("shift+tab", "app.focus_previous", "Previous table: Go to the other table", show=False),
            Binding("escape", "app.pop_screen", "Back: Go back"),
            Binding("q", "app.quit", "Quit"),
        ],
    )
    NAME = "Training"
    HELP = """Trainings as their files show them: of a [b]flmarket train[/b] that runs now, was killed, or has ended.

The curve joins the evaluations, which play without exploring on markets that no episode plays. Of a single training,
the dim curve behind it is that of the episodes themselves. The lines ┄ are the paper's heuristics on the same markets;
a training on the surrogate records them.

The lower table shows what the agent did in its last evaluation: clients that it made offers to in a round, how many of
them served it, and what it offered above their bids. The bars show where its offers went: clients of each round are
cut into fifths by their bid, and again by their DQI."""
    CSS_PATH = "training.tcss"
    AUTO_FOCUS = "#training-table"

    def __init__(self, logs: Sequence[Path]) -> None:
        super().__init__()
        self.feeds = [TrainingFeed(log) for log in logs]
        self.metric = METRICS[0]
        self._read = False

    def compose(self) -> ComposeResult:
        yield Static("", id="training-status")
        yield LearningCurves(id="training-curves")
        yield TrainingTable(id="training-table")
        yield PreferenceTable(id="training-preferences")
        yield Static("", id="training-detail")
        yield KeyBar()

    def see(self) -> Sequence[object]:
        return [feed.look() for feed in self.feeds]

    def take(self, seen: Sequence[object]) -> None:
        self._read = True

    @property
    def chosen(self) -> int:
        return min(self.query_one(TrainingTable).cursor, len(self.feeds) - 1)

    def draw(self) -> None:
        if not self._read or not self.is_mounted or not self.query("#training-table"):
            return
        self.query_one(TrainingTable).show(self.feeds)
        self.query_one(LearningCurves).show(self.feeds, self.metric, self.chosen)
        self.query_one(PreferenceTable).show(self.feeds[self.chosen])
        self._words()

    def _words(self) -> None:
        feed = self.feeds[self.chosen]
        table = self.query_one(PreferenceTable)
        newest = feed.preferences[-1].episode if feed.preferences else 0
        after = f" after episode {newest}" if newest else ": none recorded yet"
        table.border_title = f"what {feed.name} prefers, evaluation{after}"
        counts = [(sum(one.state == state for one in self.feeds), word) for state, word in _STATES]
        line = plain(f" {counted(len(self.feeds), 'training')}", "bold")
        line.append("".join(f" · {count} {word}" for count, word in counts if count))
        if feed.evaluations and not feed.baselines:
            line.append(f" · {NO_BASELINES}", tint(self.app, "foreground", dim=True))
        self.query_one("#training-status", Static).update(line, layout=False)
        self.query_one("#training-detail", Static).update(self._detail(feed))

    def _detail(self, feed: TrainingFeed) -> Text:
        """Return what is wrong, or what the table shows of the chosen service in words."""
        if feed.problem:
            return Text(feed.problem, tint(self.app, "error"))
        evaluated = self.query_one(PreferenceTable).chosen
        if evaluated is None:
            return Text(str(feed.log), tint(self.app, "foreground", dim=True))
        return Text(in_words(evaluated))

    @on(TableView.Moved)
    def _moved(self) -> None:
        self.draw()

    @on(ZoomPlot.Zoomed)
    def _zoomed(self) -> None:
        self.draw()

    def action_next_metric(self) -> None:
        self.metric = METRICS[(METRICS.index(self.metric) + 1) % len(METRICS)]
        self.draw()


_STATES = (
    (RunState.STARTING, "starting"),
    (RunState.RUNNING, "running"),
    (RunState.COMPLETE, "complete"),
    (RunState.INTERRUPTED, "interrupted (the command with --resume continues it)"),
)
