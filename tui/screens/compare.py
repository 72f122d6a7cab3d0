"""The compare screen: a curve and table rows for each run, with differences from a baseline."""

from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static

from tui.screens.navigation import Navigator
from tui.watching.comparison import Row, caveats, compare
from tui.watching.history import METRICS
from tui.watching.session import Session, SessionChanged
from tui.widgets.comparecurves import CompareCurves
from tui.widgets.look import percent, plain, same, series_color, sign, tint
from tui.widgets.redraw import Redraw
from tui.widgets.statusline import SIGNS

COLUMNS = {
    "sign": "#",
    "run": "run",
    "service": "service",
    "policy": "policy",
    "accuracy": "accuracy %",
    "accuracy_delta": "Δ",
    "target": "target met in",
    "target_delta": "Δ",
    "spent": "spent",
    "spent_delta": "Δ",
    "served": "served",
    "refused": "refused",
}


class CompareScreen(Screen[None]):
    """Compares two or more runs, at the same round unless the user asks for each run's latest."""

    BINDINGS = [
        Binding("v", "next_metric", "Next curve"),
        Binding("tab,right", "service(1)", "Next service"),
        Binding("shift+tab,left", "service(-1)", "Previous service", show=False),
        Binding("l", "align", "Same round/latest"),
        Binding("b", "baseline", "Next baseline"),
        Binding("space", "pause", "Pause/resume all"),
        Binding("enter", "open", "Open run"),
        Binding("x", "picture", "Picture"),
        Binding("escape", "back", "Back"),
    ]
    HELP = """Runs compared: in the plot a curve for each run, in the table a row for each service and run.

Δ is the difference from the baseline, at first the first run ([b]b[/b] chooses the next one). All numbers are for the
last round that every run has reached ([b]l[/b]: for each run's latest round), so live runs can be compared too.

[b]tab[/b] next service in the plot   [b]v[/b] accuracy, reward, spend, price
[b]space[/b] pause or resume the live runs
[b]enter[/b] open the run of the chosen row"""
    CSS_PATH = "compare.tcss"
    AUTO_FOCUS = "#compare-table"

    def __init__(self, sessions: Sequence[Session], navigator: Navigator) -> None:
        super().__init__()
        self.sessions = list(sessions)
        self._navigator, self._runs = navigator, navigator.runs
        self.service, self.metric, self.baseline, self.aligned = 0, METRICS[0], 0, True
        self._redraw = Redraw(self, self.draw)
        self._shown: dict[tuple[str, str], Text] = {}

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static("", id="compare-status")
        with Horizontal(id="compare-plot"):
            yield CompareCurves(id="compare-curves")
        yield DataTable(id="compare-table", cursor_type="row", zebra_stripes=True)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Start watching the runs."""
        table = self.query_one(DataTable)
        for key, label in COLUMNS.items():
            table.add_column(label, key=key)
        for session in self.sessions:
            session.watch(self)
        self.app.theme_changed_signal.subscribe(self, lambda _: self.draw())
        self.call_after_refresh(self.draw)

    def on_unmount(self) -> None:
        """Stop watching the runs."""
        for session in self.sessions:
            session.unwatch(self)

    def on_screen_resume(self) -> None:
        """Show what happened in the meantime."""
        self._redraw.request()

    def on_resize(self) -> None:
        """Draw at the new size."""
        self.call_after_refresh(self.draw)

    @on(SessionChanged)
    def _session_changed(self) -> None:
        self._redraw.request()

    @property
    def services(self) -> list[str]:
        """The services of the first run that has any."""
        found = next((session.scenario for session in self.sessions if session.scenario), None)
        return [service.name for service in found.services] if found else []

    def draw(self) -> None:
        """Show the runs as they are now."""
        if not self.is_mounted or not self.query("#compare-table"):
            return
        for session in self.sessions:
            session.seen(self)
        rounds = self._rounds()
        self._status(rounds)
        if self.services:
            self.service = min(self.service, len(self.services) - 1)
            self.query_one(CompareCurves).show(self.sessions, rounds, self.services[self.service], self.metric)
            self._fill(compare(self.sessions, rounds, self.baseline))

    def _rounds(self) -> list[int]:
        """Return the round at which each run is shown."""
        played = [len(session.history) for session in self.sessions]
        # A run that is over counts with its last round: its services have left, or there are no more rounds.
        going = [n for n, session in zip(played, self.sessions, strict=True) if not session.over]
        common = min(going) if going else max(played, default=0)
        return [min(n, common) for n in played] if self.aligned else played

    def _status(self, rounds: list[int]) -> None:
        line = Text(no_wrap=True)
        for place, (session, number) in enumerate(zip(self.sessions, rounds, strict=True)):
            base = " (baseline)" if place == self.baseline else ""
            words = f" {sign(place)} {self._name_of(session)} · round {number} {SIGNS[session.phase]}{base} "
            line.append(words, f"bold {series_color(place)}")
        notes = caveats(self.sessions)
        second = plain(" " + (" · ".join(notes) if notes else "same market, same seed; only the policies differ"))
        second.stylize(tint(self.app, "warning") if notes else tint(self.app, "foreground", dim=True))
        self.query_one("#compare-status", Static).update(Text("\n").join([line, second]), layout=False)

    def _fill(self, rows: list[Row]) -> None:
        table = self.query_one(DataTable)
        for row in rows:
            key, cells = f"{row.service}\0{row.run}", self._cells(row)
            if key not in table.rows:
                table.add_row(*cells.values(), key=key)
                self._shown.update({(key, column): cell for column, cell in cells.items()})
                continue
            for column, cell in cells.items():
                if not same(self._shown.get((key, column)), cell):
                    self._shown[key, column] = cell
                    table.update_cell(key, column, cell, update_width=True)

    def _cells(self, row: Row) -> dict[str, Text]:
        color = series_color(row.run)
        to_target = str(row.to_target.rounds[0]) if row.to_target.reached[0] else "not yet"
        return {
            "sign": plain(sign(row.run), color),
            "run": plain(self._name_of(self.sessions[row.run]), color),
            "service": plain(row.service),
            "policy": plain(row.policy),
            "accuracy": plain(f"{percent(row.accuracy):>6}"),
            "accuracy_delta": self._delta(None if row.accuracy_delta is None else 100 * row.accuracy_delta, 1, 1),
            "target": plain(f"{to_target:>7}"),
            "target_delta": self._delta(row.to_target_delta, -1, 0),
            "spent": plain(f"{row.spent:>9.2f}"),
            "spent_delta": self._delta(row.spent_delta, -1, 2),
            "served": plain(f"{row.served:>6}"),
            "refused": plain(f"{row.refused:>6}"),
        }

    def _name_of(self, session: Session) -> str:
        """Return the shortest name that distinguishes a run from the others."""
        if session.scenario is None:
            return session.label
        words = [session.policy]
        if len({other.seed for other in self.sessions}) > 1:
            words.append(f"seed {session.seed}")
        if len({other.hash8 for other in self.sessions}) > 1:
            words.append(f"{session.scenario.name}-{session.hash8}")
        return " · ".join(words)

    def _delta(self, value: float | None, good: int, decimals: int) -> Text:
        if value is None:
            return plain("")
        color = "foreground" if not value else ("success" if value * good > 0 else "error")
        return plain(f"{value:+.{decimals}f}", tint(self.app, color))

    def action_next_metric(self) -> None:
        """Show the next curve."""
        self.metric = METRICS[(METRICS.index(self.metric) + 1) % len(METRICS)]
        self.draw()

    def action_service(self, steps: int) -> None:
        """Show another service in the plot."""
        self.service = (self.service + steps) % max(1, len(self.services))
        self.draw()

    def action_align(self) -> None:
        """Show all runs at the same round, or each run at its latest."""
        self.aligned = not self.aligned
        self.draw()

    def action_baseline(self) -> None:
        """Make the next run the baseline."""
        self.baseline = (self.baseline + 1) % len(self.sessions)
        self.draw()

    def action_pause(self) -> None:
        """Pause the live runs, or resume them if all are paused."""
        ours = [session for session in self.sessions if self._runs.steerable(session)]
        if not ours:
            self.notify("None of these runs is played by this app, so there is nothing to pause.", timeout=4)
        running = [session for session in ours if session.phase != "paused"]
        for session in running or ours:
            self._runs.send(session, "pause" if running else "resume")

    @on(DataTable.RowSelected)
    def action_open(self) -> None:
        """Open the run of the chosen row."""
        table = self.query_one(DataTable)
        if table.row_count:
            key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
            place = int(str(key).rpartition("\0")[2])
            self._navigator.show_market(self.sessions[place])

    def action_picture(self) -> None:
        """Save a picture of the screen."""
        self.app.action_screenshot()

    def action_back(self) -> None:
        """Go back; the runs continue."""
        self.app.pop_screen()
