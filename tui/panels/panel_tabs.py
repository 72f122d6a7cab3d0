"""The panels as tabs, if there is room for one at a time."""

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.widgets import Static

from tui.panels.panel import Panel
from tui.style.colors import tint
from tui.style.messages import PanelWanted


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
