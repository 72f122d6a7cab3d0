"""The market screen: a run, live or replayed. All panels show the same moment of it."""

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import Resize
from textual.theme import Theme
from textual.widgets import Input

from scenarios.logs.reading import LogError
from scenarios.logs.run_state import RunState
from tui.panels.answers import AnswerPanel
from tui.panels.curves import CurvesPanel
from tui.panels.event_log import EventsPanel
from tui.panels.layout import PANELS, Panels
from tui.panels.order_book import BookPanel
from tui.panels.panel import PanelWanted, Seek, Selected
from tui.panels.services import ServicesPanel
from tui.panels.status_line import SeekBar, StartSteps, StatusLine
from tui.screens.export_dialog import ExportDialog
from tui.screens.intervention_dialog import InterventionDialog
from tui.screens.navigation import Navigator
from tui.screens.playback import PlaybackScreen
from tui.screens.run_dialogs import PickRunsDialog
from tui.state.moment import Moment
from tui.state.watched_run import Session, SessionChanged
from tui.style.key_names import HELP, named
from tui.widgets.key_bar import KeyBar

OPENING = "-opening"  # the class of a screen whose run has no round yet


class MarketScreen(PlaybackScreen):
    """Shows one run."""

    BINDINGS = named(
        "market",
        [
            Binding("space", "play", "Pause: Pause or resume the run; play or stop a replay"),
            *HELP,
            Binding("left_square_bracket,left", "seek(-1)", "Seek: Show the round before", key_display="[ ]"),
            Binding("plus,equals_sign", "faster(1)", "Speed: Play at a higher speed", key_display="+ -"),
            Binding(
                "i", "intervene", "Intervene: Multiply a budget, or make another intervention, in a fork beside the run"
            ),
            Binding("c", "compare", "Compare: Compare with other runs, or with another policy"),
            Binding("s", "step", "Round: Play or show one round"),
            Binding("e", "walk(1)", "Event: Walk through the events of the round"),
            Binding("E", "walk(-1)", "Event back: Walk back through the events", show=False),
            Binding("minus", "faster(-1)", "Slower: Play at a lower speed", show=False),
            Binding("F", "full_speed", "Full speed: Play at full speed", show=False),
            Binding("M", "motion", "Motion: Let slow rounds unfold, or show them as a whole", show=False),
            Binding("right_square_bracket,right", "seek(1)", "Next round", show=False),
            Binding("left_curly_bracket,shift+left", "seek(-10)", "Back 10 rounds", show=False),
            Binding("right_curly_bracket,shift+right", "seek(10)", "Forward 10 rounds", show=False),
            Binding("home", "seek(-1000000000)", "First round", show=False, priority=True),
            Binding("f", "follow", "Newest: Show the newest round, and follow the run"),
            Binding("end", "follow", "Newest: Show the newest round, and follow the run", show=False, priority=True),
            Binding("n", "jump('exit', 1)", "Next exit: Next round in which a service leaves", show=False),
            Binding("N", "jump('exit', -1)", "Previous exit: Previous round in which a service leaves", show=False),
            Binding("o", "jump('conflict', 1)", "Next outbid: Next round in which an offer is refused", show=False),
            Binding(
                "O", "jump('conflict', -1)", "Previous outbid: Previous round in which an offer is refused", show=False
            ),
            Binding("g", "go_to", "Go to round: Go to a round by its number", show=False),
            Binding("x", "export", "Export: Export a table as CSV, or a picture of the screen"),
            Binding("v", "next_metric", "Next curve: Show the next curve: accuracy, reward, spend, price", show=False),
            Binding(
                "b",
                "toggle_book",
                "Book of a service/client: Show the order book of the service, or that of the client",
                show=False,
            ),
            Binding("W", "ask(False)", "Why: Why the client serves whom it serves", show=False, key_display="W"),
            Binding(
                "B", "ask(True)", "Best set: The best set that the service could have had", show=False, key_display="B"
            ),
            Binding("m", "maximise", "Max: Give the panel all the room, or put it back"),
            *[
                Binding(str(panel.NUMBER), f"panel({panel.NUMBER})", f"Panel {panel.NAME}: Go to a panel", show=False)
                for panel in PANELS
            ],
            Binding("escape", "back", "Back: Go back; the run continues"),
        ],
    )
    PARTS = PANELS  # whose keys help lists, too
    CSS_PATH = "market.tcss"
    AUTO_FOCUS = "#services-table"

    def __init__(self, session: Session, navigator: Navigator, round_: int = 0) -> None:
        """Show a run: its newest round, or the one that is asked for, as soon as it has been read."""
        super().__init__(session, navigator, round_)
        self.selected: tuple[int, int | None] = (0, None)  # the service and the client, which all panels follow
        self.labels: dict[str, str] = {}  # what keys do as things stand, by their actions

    def compose(self) -> ComposeResult:
        yield StatusLine(id="status")
        yield SeekBar(id="seek")
        yield StartSteps(id="opening")
        yield Panels()
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Leave the keys of the cursor to a text field, and do not offer to maximise what has all the room."""
        if action == "maximise":
            return not any(panels.folded for panels in self.query(Panels))
        return not (action in {"seek", "follow"} and isinstance(self.focused, Input))

    def on_mount(self) -> None:
        self.session.watch(self)
        self.app.theme_changed_signal.subscribe(self, self._recolor)
        settings = self._navigator.settings
        self.call_after_refresh(self.panels.begin, settings.panel, maximised=settings.maximised)
        self.call_after_refresh(self.draw)

    def _recolor(self, _: Theme) -> None:
        self.panels.fold(self.size)
        self.draw()

    def on_unmount(self) -> None:
        self.session.unwatch(self)

    def on_screen_suspend(self) -> None:
        settings = self._navigator.settings
        settings.panel, settings.maximised = self.panels.active, self.panels.maximised

    def on_screen_resume(self) -> None:
        self._redraw.request()

    @property
    def panels(self) -> Panels:
        return self.query_one(Panels)

    @property
    def view(self) -> Moment:
        service, client = self.selected
        return Moment(self.session, self.head.round, self.head.event, service, client)

    def draw(self) -> None:
        if not self.is_mounted or not self.query(Panels):
            return
        self.session.seen(self)
        if self.head.grown(self.session.history) and not self.session.over:
            self._unfold()
        try:
            self._show(self.view)
        except LogError as error:
            self.session.spoil(error)

    def _show(self, view: Moment) -> None:
        steerable = self._runs.steerable(self.session)
        self.query_one(StatusLine).show(view, following=self.head.following, playing=self.playing, steerable=steerable)
        self.query_one(SeekBar).show(view)
        self._open_panels(view)
        if self.has_class(OPENING):
            self.query_one(StartSteps).show(self.session)
        else:
            self.panels.show(view)

        self._label_keys()

    def _label_keys(self) -> None:
        steerable, paused = self._runs.steerable(self.session), self.session.state is RunState.PAUSED
        play = ("Resume" if paused else "Pause") if steerable else ("Stop" if self.playing else "Replay")
        labels = {"play": play}
        if self.panels.maximised:
            labels |= {"maximise": "Restore", "back": "Restore"}
        if isinstance(self.panels.front, AnswerPanel):
            labels["back"] = "Close"
        if self.query_one(EventsPanel).has_class("-filtering"):
            labels["back"] = "All events"
        if labels != self.labels:
            self.labels = labels
            self.refresh_bindings()

    def _open_panels(self, view: Moment) -> None:
        opening = not view.begun
        if opening != self.has_class(OPENING):
            self.set_class(opening, OPENING)
            if not opening:
                self.call_after_refresh(self.panels.all[self.panels.active - 1].target.focus)
                # Panels know their size only after the layout.
                self.call_after_refresh(self.draw)

    @on(SessionChanged)
    def _session_changed(self) -> None:
        self._redraw.request()

    @on(Seek)
    def _seek_to(self, message: Seek) -> None:
        self.show_round(message.round)

    @on(Selected)
    def _select(self, message: Selected) -> None:
        service, client = self.selected
        chosen = (
            service if message.service is None else message.service,
            client if message.client is None else message.client,
        )
        if chosen != self.selected:
            if chosen[0] != service and self.panels.active == ServicesPanel.NUMBER:
                self.query_one(BookPanel).target.by_client = False
            self.selected = chosen
            self.draw()

    def on_resize(self, event: Resize) -> None:
        self.panels.fold(event.size)
        self.refresh_bindings()  # folded panels cannot be maximised
        # Widths are known only after the layout.
        self.call_after_refresh(self.draw)

    # Panels

    def action_panel(self, number: int) -> None:
        if self.panels.go_to(number):
            self.call_after_refresh(self.draw)

    @on(PanelWanted)
    def _go_to_panel(self, message: PanelWanted) -> None:
        self.action_panel(message.number)

    def action_maximise(self) -> None:
        self.panels.maximise()
        self.call_after_refresh(self.draw)

    def action_next_metric(self) -> None:
        self._bring_up(CurvesPanel.NUMBER)
        self.query_one(CurvesPanel).next_metric()

    def action_jump(self, what: str, direction: int) -> None:
        """Go to the next or previous exit or conflict; of a conflict, choose the service and the client."""
        super().action_jump(what, direction)
        if what == "conflict" and self.head.round and (offer := self.view.refusal()) is not None:
            self.selected = offer
            self.draw()

    def action_toggle_book(self) -> None:
        self._bring_up(BookPanel.NUMBER)
        book = self.query_one(BookPanel)
        self._choose_client()
        book.toggle()
        self.draw()

    def action_ask(self, best: bool) -> None:
        """Answer a question about what is chosen, and go to the answer."""
        self._choose_client()
        self.query_one(AnswerPanel).ask(best=best)
        self.action_panel(AnswerPanel.NUMBER)
        self.draw()

    def _choose_client(self) -> None:
        """Choose the client that a question is about, if the user has chosen none."""
        if (view := self.view).begun:
            self.selected = view.service, view.asked

    def _bring_up(self, number: int) -> None:
        """Go to a panel that is not shown, so that a key's effect on it is seen."""
        if not self.panels.all[number - 1].display:
            self.action_panel(number)

    def action_filter_events(self) -> None:
        self.action_panel(EventsPanel.NUMBER)
        self.query_one(EventsPanel).open_filter()

    # Elsewhere

    def action_intervene(self) -> None:
        if self.session.scenario is None or not len(self.session.history):
            self.notify("A run can be forked once its first round is over.", severity="warning")
            return
        head, newest = self.head, len(self.session.history)
        first = (newest if head.following else head.round) + 1
        if first > self.session.scenario.rounds or (newest and self._all_left(first)):
            first = max(1, head.round)
        self.app.push_screen(InterventionDialog(self.session, first, self.selected[0]), self._fork)
        self._runs.prepare(self.session.scenario)

    def _all_left(self, first: int) -> bool:
        history = self.session.history
        return first > len(history) and all(row.status.gone for row in history[len(history)].services)

    def _fork(self, intervened: tuple[str, int] | None) -> None:
        if intervened is None:
            self._runs.release()
            return
        scenario, round_ = intervened
        fork = self._runs.fork(self.session, scenario, round_, paused=self.session.state is RunState.PAUSED)
        self._navigator.show_fork(fork, self.selected)
        self.app.notify("The fork is shown beside the original, which is unchanged; esc leads to the fork.", timeout=6)

    def action_compare(self) -> None:
        def compare(others: list[Session] | None) -> None:
            if others:
                self._navigator.show_comparison([self.session, *others])

        self.app.push_screen(PickRunsDialog(self.session, self._runs, self._navigator.out), compare)

    def action_export(self) -> None:
        if not len(self.session.history):
            self.notify("There is no round to export yet.", severity="warning")
            return
        panel = self.panels.all[self.panels.active - 1]
        self.app.push_screen(ExportDialog(self.session, panel, panel.NAME))

    def action_back(self) -> None:
        """Clear the filter, else close the answers, else restore a maximised panel, else go back; the run continues."""
        if self.query_one(EventsPanel).close_filter():
            return
        if isinstance(self.panels.front, AnswerPanel):
            self.panels.close_front()
            self.call_after_refresh(self.draw)
            return
        if self.panels.maximised:
            self.action_maximise()
            return
        self.app.pop_screen()
