"""The panels of the market: all or six side by side if there is room, else one at a time under a bar of tabs."""

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.geometry import Size
from textual.widgets import Static

from tui.panels.answers import AnswerPanel
from tui.panels.client_grid import ClientsPanel
from tui.panels.curves import CurvesPanel
from tui.panels.event_log import EventsPanel
from tui.panels.gantt import CoresPanel
from tui.panels.order_book import BookPanel
from tui.panels.panel import Panel, PanelWanted
from tui.panels.rivalry import RivalryPanel
from tui.panels.services import ServicesPanel
from tui.state.moment import Moment
from tui.style.colors import tint

WIDE, HIGH = 120, 36  # the smallest size at which panels are side by side
ALL_WIDE, ALL_HIGH = 160, 44  # the same for all of them
LEAST = 10  # rows that the curves have below the services, where only one panel is shown otherwise
OTHERS = 8  # rows of the screen that show no panel, and of the services' frame and titles

PANELS: tuple[type[Panel], ...] = (
    ServicesPanel,
    CurvesPanel,
    ClientsPanel,
    BookPanel,
    EventsPanel,
    CoresPanel,
    RivalryPanel,
    AnswerPanel,
)
"""The panels, each at the place of its number. market.tcss gives each its part of the grid."""


class Panels(Vertical):
    """All panels, one of which is active."""

    def __init__(self) -> None:
        super().__init__()
        self.all = [panel() for panel in PANELS]
        self.active = 1  # the number of the panel that has the focus, or had it last
        self._before = 1  # the number of the one before
        self.front: Panel | None = None  # the one that is shown instead of others, or next to them and has the focus
        self._bar = PanelBar(id="panel-bar")
        self._services = self._height = 0

    def compose(self) -> ComposeResult:
        yield self._bar
        with Container(id="panels"):
            yield from self.all

    def on_mount(self) -> None:
        self._activate(1)

    @property
    def folded(self) -> bool:
        return self.has_class("-folded")

    @property
    def _all(self) -> bool:
        """Whether there is room for all panels at once."""
        return self.has_class("-all")

    @property
    def maximised(self) -> bool:
        """Whether the user has given one panel all the room, where there is room for several."""
        return self.has_class("-maximised") and not self.folded

    @property
    def single(self) -> bool:
        """Whether one panel is shown, because it is maximised or there is no room for more but the curves."""
        return self.maximised or self.folded

    def show(self, view: Moment) -> None:
        """Show a moment of a run on all visible panels."""
        if view.begun and self._services != len(view.logged.services):
            self._services = len(view.logged.services)
            self._activate(self.active)
        for panel in self.all if view.begun else ():
            # The user may leave a screen before all its parts are mounted.
            if panel.is_attached and panel.display:
                panel.show(view)

    def begin(self, number: int, *, maximised: bool) -> None:
        """Begin with a panel, as it was when the user last left a market."""
        if (number, maximised) != (1, False) and number <= len(self.all):
            self.set_class(maximised, "-maximised")
            self.go_to(number)

    def fold(self, room: Size) -> None:
        """Fold the panels into tabs if there is no room for all."""
        self._height = room.height
        self.set_class(room.width < WIDE or room.height < HIGH, "-folded")
        self.set_class(room.width >= ALL_WIDE and room.height >= ALL_HIGH, "-all")
        self._activate(self.active)

    def go_to(self, number: int) -> bool:
        """Give a panel the focus; return whether it was hidden, and does not know its size yet."""
        hidden = not self.all[number - 1].display
        self._activate(number)
        self.all[number - 1].target.focus()
        return hidden

    def close_front(self) -> None:
        """Put back the panels in whose place one is shown, and the focus if that had it."""
        leaves = self.front is self.all[self.active - 1]
        self.front = None
        self.go_to(self._before if leaves else self.active)

    def maximise(self) -> None:
        """Maximise the active panel, or restore it."""
        self.toggle_class("-maximised")
        self.go_to(self.active)

    def on_descendant_focus(self) -> None:
        for panel in self.all:
            if panel.has_focus_within and self.active != panel.NUMBER:
                self._activate(panel.NUMBER)

    def _activate(self, number: int) -> None:
        if number != self.active:
            self.active, self._before = number, self.active
        chosen = self.all[number - 1]
        if chosen.INSTEAD:
            self.front = chosen
        elif self.front is not None and (self._all or number in self.front.INSTEAD):
            self.front = None
        two = self.folded and number == 1 and self._height - OTHERS - self._services >= LEAST
        self.set_class(two, "-two")
        shown = {1, 2} if two else {number}
        for panel in self.all:
            panel.display = panel.NUMBER in shown if self.single else self._has_place(panel)
        self._bar.show(self.all, number)

    def _has_place(self, panel: Panel) -> bool:
        if self._all:
            return True
        if panel.INSTEAD:
            return panel is self.front
        return self.front is None or panel.NUMBER not in self.front.INSTEAD


class PanelBar(Static):
    """``1 Services  2 Curves …``; a click goes there."""

    def show(self, panels: Sequence[Panel], active: int) -> None:
        """Show the panels' names, the active one in brackets."""
        line = Text(no_wrap=True)
        self._places: list[tuple[int, int, int]] = []  # where each begins and ends, and its number
        faint = tint(self.app, "foreground", dim=True)
        for panel in panels:
            start = len(line)
            name = f"{panel.NUMBER} {panel.SHORT or panel.NAME}"
            chosen = active == panel.NUMBER
            line.append(
                f"[{name}]" if chosen else f" {name} ", tint(self.app, "accent", bold=True) if chosen else faint
            )
            self._places.append((start, len(line), panel.NUMBER))
        self.update(line, layout=False)

    def on_click(self, event: events.Click) -> None:
        for start, end, number in self._places:
            if start <= event.x < end:
                self.post_message(PanelWanted(number))
