"""Saving a scenario as a new file, and leaving without saving."""

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button, Input, Static

from tui.screens.dialog import Box, Dialog, Question


class SaveDialog(Dialog[Path]):
    """Asks for a file; one that exists is replaced only when asked twice."""

    def __init__(self, proposed: Path) -> None:
        super().__init__()
        self._proposed = proposed
        self._warned: Path | None = None

    def compose(self) -> ComposeResult:
        """Lay out the dialog."""
        with Box():
            yield Static("[b]Save as[/b]")
            yield Input(str(self._proposed), id="path", compact=True)
            yield Static("", classes="problem")
            with Horizontal(classes="buttons"):
                yield Button("Save", variant="primary", id="go", compact=True)
                yield Button("Cancel", id="cancel", compact=True)

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        path = Path(self.query_one("#path", Input).value).expanduser()
        if path.suffix != ".toml":
            self.complain("the name of a scenario file ends in .toml")
        elif path.exists() and path != self._warned:
            self._warned = path
            self.complain(f"{path.name} is there already; Save once more replaces it")
        else:
            self.dismiss(path)

    @on(Button.Pressed, "#cancel")
    def _cancel(self) -> None:
        self.dismiss(None)


class DiscardDialog(Question):
    """Asks whether to leave changes behind."""

    def __init__(self) -> None:
        super().__init__("[b]The changes are not saved.[/b]", "Discard them")
