"""Leaving while runs are going on."""

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Button, Static

from tui.screens.dialog import Box, Dialog


class LeaveDialog(Dialog[bool]):
    """Asks whether to stop what runs."""

    BINDINGS = [Binding("y", "leave", "Quit"), Binding("n", "cancel", "Stay")]

    def __init__(self, running: int) -> None:
        super().__init__()
        self._count = running

    def compose(self) -> ComposeResult:
        """Lay out the dialog."""
        runs = "A run is" if self._count == 1 else f"{self._count} runs are"
        with Box():
            yield Static(f"[b]{runs} still going on.[/b]\nThe rounds so far stay on disk and can be replayed.")
            with Horizontal(classes="buttons"):
                yield Button("Quit and stop (y)", variant="error", id="go", compact=True)
                yield Button("Stay (n)", id="cancel", compact=True)

    @on(Button.Pressed, "#go")
    def action_leave(self) -> None:
        """Leave."""
        self.dismiss(True)

    @on(Button.Pressed, "#cancel")
    def _stay(self) -> None:
        self.dismiss(None)
