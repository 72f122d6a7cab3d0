"""The market screen: a run, live or replayed. All panels show the same moment of it."""

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import Resize
from textual.screen import Screen
from textual.theme import Theme
from textual.timer import Timer
from textual.widgets import Footer, Input

from scenarios.logs.reading import LogError
from tui.screens.export import ExportDialog
from tui.screens.goto import ask_for_round
from tui.screens.navigation import Navigator
from tui.screens.pick import PickRuns
from tui.screens.shock import ShockDialog
from tui.watching.playhead import Playhead, faster
from tui.watching.session import Phase, Session, SessionChanged
from tui.watching.view import View
from tui.widgets.curves import CurvesPanel
from tui.widgets.eventlog import EventsPanel
from tui.widgets.keys import named
from tui.widgets.messages import PanelWanted, Seek, Selected
from tui.widgets.orderbook import BookPanel
from tui.widgets.panels import PANELS, Panels
from tui.widgets.redraw import Redraw
from tui.widgets.seekbar import SeekBar
from tui.widgets.statusline import StatusLine

REPLAY_RATE = 20.0
"""Rounds per second of a replay at full speed."""


class MarketScreen(Screen[None]):
    """Shows one run."""

    BINDINGS = named(
        "market",
        [
            Binding("space", "play", "Pause"),
            Binding("question_mark,f1", "app.help", "Help", key_display="?"),
            Binding("s", "step", "Round"),
            Binding("e", "walk(1)", "Event"),
            Binding("E", "walk(-1)", "Event back", show=False, key_display="E"),
            Binding("plus,equals_sign", "faster(1)", "Speed", key_display="+ -"),
            Binding("minus", "faster(-1)", "Slower", show=False, key_display="-"),
            Binding("left_square_bracket,left", "seek(-1)", "Seek", key_display="[ ]"),
            Binding("right_square_bracket,right", "seek(1)", "Next round", show=False, key_display="]"),
            Binding("left_curly_bracket,shift+left", "seek(-10)", "Back 10 rounds", show=False, key_display="{"),
            Binding("right_curly_bracket,shift+right", "seek(10)", "Forward 10 rounds", show=False, key_display="}"),
            Binding("home", "seek(-1000000000)", "First round", show=False, priority=True),
            Binding("f", "follow", "Newest"),
            Binding("end", "follow", "Newest", show=False, priority=True),
            Binding("n", "jump('exit', 1)", "Next exit", show=False),
            Binding("N", "jump('exit', -1)", "Previous exit", show=False, key_display="N"),
            Binding("o", "jump('conflict', 1)", "Next outbid", show=False),
            Binding("O", "jump('conflict', -1)", "Previous outbid", show=False, key_display="O"),
            Binding("g", "go_to", "Go to round", show=False),
            Binding("i", "shock", "Shock"),
            Binding("c", "compare", "Compare"),
            Binding("x", "export", "Export"),
            Binding("v", "next_metric", "Next curve", show=False),
            Binding("b", "toggle_book", "Book of a service/client", show=False),
            Binding("slash", "filter_events", "Filter events", show=False, key_display="/"),
            Binding("m", "maximise", "Max"),
            *[
                Binding(str(panel.NUMBER), f"panel({panel.NUMBER})", f"Panel {panel.NAME}", show=False)
                for panel in PANELS
            ],
            Binding("escape", "back", "Home"),
        ],
    )
    CSS_PATH = "market.tcss"
    AUTO_FOCUS = "#services-table"

    def __init__(self, session: Session, navigator: Navigator) -> None:
        super().__init__()
        self.session = session
        self._navigator, self._runs = navigator, navigator.runs
        self.head = Playhead()
        self.selected = (0, 0)  # service and client
        self._redraw = Redraw(self, self.draw)
        self._player: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield StatusLine(id="status")
        yield SeekBar(id="seek")
        yield Panels()
        yield Footer(compact=True, show_command_palette=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Leave the keys of the cursor to a text field, which has the focus while something is typed."""
        return not (action in {"seek", "follow"} and isinstance(self.focused, Input))

    def on_mount(self) -> None:
        """Start watching the run."""
        self.session.watch(self)
        self.app.theme_changed_signal.subscribe(self, self._recolor)
        settings = self._navigator.settings
        self.call_after_refresh(self.panels.begin, settings.panel, maximised=settings.maximised)
        self.call_after_refresh(self.draw)

    def _recolor(self, _: Theme) -> None:
        """Show the moment in the colours of another theme."""
        self.panels.fold(self.size)
        self.draw()

    def on_unmount(self) -> None:
        """Stop watching the run."""
        self.session.unwatch(self)

    def on_screen_suspend(self) -> None:
        """Remember the panel for the next market."""
        settings = self._navigator.settings
        settings.panel, settings.maximised = self.panels.active, self.panels.maximised

    def on_screen_resume(self) -> None:
        """Show what happened in the meantime."""
        self._redraw.request()

    @property
    def panels(self) -> Panels:
        """The panels."""
        return self.query_one(Panels)

    @property
    def view(self) -> View:
        """The moment that is shown."""
        service, client = self.selected
        return View(self.session, self.head.round, self.head.event, service, client)

    def draw(self) -> None:
        """Show the moment on all visible panels."""
        if not self.is_mounted or not self.query(Panels):
            return
        self.session.seen(self)
        self.head.grown(self.session.history)
        try:
            self._show(self.view)
        except LogError as error:
            self.session.spoil(error)

    def _show(self, view: View) -> None:
        playing = self._player is not None
        self.query_one(StatusLine).show(view, following=self.head.following, playing=playing)
        self.query_one(SeekBar).show(view)
        self.panels.show(view)

    @on(SessionChanged)
    def _session_changed(self) -> None:
        self._redraw.request()

    @on(Seek)
    def _seek_to(self, message: Seek) -> None:
        self._stop_playing()
        self.head.seek(self.session.history, message.round)
        self.draw()

    @on(Selected)
    def _select(self, message: Selected) -> None:
        service, client = self.selected
        chosen = (
            service if message.service is None else message.service,
            client if message.client is None else message.client,
        )
        if chosen != self.selected:
            self.selected = chosen
            self.draw()

    def on_resize(self, event: Resize) -> None:
        """Fold the panels into tabs if there is no room for all."""
        self.panels.fold(event.size)
        # Widths are known only after the layout.
        self.call_after_refresh(self.draw)

    # Panels

    def action_panel(self, number: int) -> None:
        """Go to a panel."""
        if self.panels.go_to(number):
            self.call_after_refresh(self.draw)

    @on(PanelWanted)
    def _go_to_panel(self, message: PanelWanted) -> None:
        service, client = self.selected
        self.action_panel(message.number)
        if message.number == BookPanel.NUMBER:
            # The book may not be filled before it is shown.
            self.call_after_refresh(self.query_one(BookPanel).point_to, service, client)

    def action_maximise(self) -> None:
        """Maximise the active panel, or restore it."""
        self.panels.maximise()
        self.call_after_refresh(self.draw)

    def action_next_metric(self) -> None:
        """Show the next curve."""
        self._bring_up(CurvesPanel.NUMBER)
        self.query_one(CurvesPanel).next_metric()

    def action_toggle_book(self) -> None:
        """Switch the order book between a service's and a client's."""
        self._bring_up(BookPanel.NUMBER)
        self.query_one(BookPanel).toggle()
        self.draw()

    def _bring_up(self, number: int) -> None:
        """Go to a panel that is not shown, so that a key's effect on it is seen."""
        if not self.panels.all[number - 1].display:
            self.action_panel(number)

    def action_filter_events(self) -> None:
        """Filter the event log."""
        self.action_panel(EventsPanel.NUMBER)
        self.query_one(EventsPanel).open_filter()

    # Time

    def _has_rounds(self) -> bool:
        """Whether there is a round to show; notify the user if not."""
        if not len(self.session.history):
            self.notify("There is no round yet." if not self.session.over else "No round was played.", timeout=3)
        return bool(len(self.session.history))

    def action_play(self) -> None:
        """Pause or resume the run if this app plays it, else the replay."""
        if self._runs.steerable(self.session):
            if self.session.phase is Phase.PAUSED:
                self._runs.send(self.session, "resume")
                self.head.follow(self.session.history)
            else:
                self._runs.send(self.session, "pause")
        elif self._player is not None:
            self._stop_playing()
        elif self._has_rounds():
            if self.head.round >= len(self.session.history):
                self.head.seek(self.session.history, 1)
            self._start_playing()
        self.draw()

    def action_step(self) -> None:
        """Play one round, then pause."""
        if self._runs.steerable(self.session):
            self._runs.send(self.session, "step")
            self.head.follow(self.session.history)
            self.draw()
        else:
            self.action_seek(1)

    def action_walk(self, direction: int) -> None:
        """Walk through the events of the round."""
        if self._has_rounds():
            self._stop_playing()
            self.head.walk(self.session.history, direction)
            self.draw()

    def action_faster(self, steps: int) -> None:
        """Change the speed."""
        before, self.session.speed = self.session.speed, faster(self.session.speed, steps)
        if self.session.speed == before:
            self.notify("There is no higher speed." if steps > 0 else "There is no lower speed.", timeout=3)
        self._navigator.settings.speed = self.session.speed
        if self._runs.steerable(self.session):
            self._runs.send(self.session, "speed", rounds=self.session.speed)
        elif self._player is not None:
            self._start_playing()
        self.draw()

    def action_seek(self, rounds: int) -> None:
        """Show another round; the run continues."""
        if not self._has_rounds():
            return
        self._stop_playing()
        before = self.head.round
        self.head.seek(self.session.history, before + rounds)
        if self.head.round == before:
            self.notify(f"Round {before} is the {'newest' if rounds > 0 else 'first'}.", timeout=3)
        self.draw()

    def action_go_to(self) -> None:
        """Ask for a round, and show it."""
        ask_for_round(self.app, self.session.history, self.head.round, lambda n: self.action_seek(n - self.head.round))

    def action_follow(self) -> None:
        """Show the newest round, and follow the run."""
        self._stop_playing()
        self.head.follow(self.session.history)
        self.draw()

    def action_jump(self, what: str, direction: int) -> None:
        """Go to the next or previous exit or conflict."""
        self._stop_playing()
        if not self.head.jump(self.session.history, what, direction):
            where = "after" if direction > 0 else "before"
            words = "service leaves" if what == "exit" else "offer is outbid or dropped"
            self.notify(f"No {words} {where} round {self.head.round}.", timeout=3)
        self.draw()

    def _start_playing(self) -> None:
        self._stop_playing()
        self._player = self.set_interval(1 / (self.session.speed or REPLAY_RATE), self._play_on)

    def _stop_playing(self) -> None:
        if self._player is not None:
            self._player.stop()
            self._player = None

    def _play_on(self) -> None:
        if self._player is None:
            return  # stopped after this call was scheduled
        self.head.seek(self.session.history, self.head.round + 1)
        if self.head.round >= len(self.session.history):
            self._stop_playing()
        self._redraw.request()

    # Elsewhere

    def action_shock(self) -> None:
        """Fork the run with a change to its market."""
        if self.session.scenario is None or not len(self.session.history):
            self.notify("A run can be forked once its first round is over.", severity="warning")
            return
        head, newest = self.head, len(self.session.history)
        first = (newest if head.following else head.round) + 1
        if first > self.session.scenario.rounds or (self.session.history.rounds[-1:] and self._all_left(first)):
            first = max(1, head.round)
        self.app.push_screen(ShockDialog(self.session, first, self.selected[0]), self._fork)

    def _all_left(self, first: int) -> bool:
        history = self.session.history
        return first > len(history) and all(row.status.value != "training" for row in history[len(history)].services)

    def _fork(self, shocked: tuple[str, int] | None) -> None:
        if shocked is None:
            return
        scenario, round_ = shocked
        fork = self._runs.fork(self.session, scenario, round_, paused=self.session.phase is Phase.PAUSED)
        self._navigator.show_market(fork, replacing=True)
        self.app.notify("This is a fork; the original run is unchanged. Press c to compare them.", timeout=6)

    def action_compare(self) -> None:
        """Compare with other runs."""

        def compare(others: list[Session] | None) -> None:
            if others:
                self._navigator.show_comparison([self.session, *others])

        self.app.push_screen(PickRuns(self.session, self._runs, self._navigator.out), compare)

    def action_export(self) -> None:
        """Export a table, or a picture of the screen."""
        if not len(self.session.history):
            self.notify("There is no round to export yet.", severity="warning")
            return
        self.app.push_screen(ExportDialog(self.session))

    def action_back(self) -> None:
        """Clear the filter, else restore a maximised panel, else go home; the run continues."""
        if self.query_one(EventsPanel).close_filter():
            return
        if self.panels.maximised:
            self.action_maximise()
            return
        self._navigator.show_home()
