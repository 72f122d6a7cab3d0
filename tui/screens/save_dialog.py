"""The dialog for saving a scenario as a new file."""

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.widgets import Button, Input, Static

from tui.screens.dialog import Box, Dialog


class SaveDialog(Dialog[Path]):
    """Asks for a file; an existing one is replaced only if Save is pressed twice."""

    def __init__(self, proposed: Path) -> None:
        super().__init__()
        self._proposed = proposed
        self._confirmed_once: Path | None = None

    def compose(self) -> ComposeResult:
        with Box():
            yield Static("[b]Save as[/b]")
            yield Input(str(self._proposed), id="path", compact=True)
            yield from self.answers("Save")

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        path = Path(self.query_one("#path", Input).value).expanduser()
        if path.suffix != ".toml":
            self.show_problem("the name of a scenario file must end in .toml")
        elif path.exists() and path != self._confirmed_once:
            self._confirmed_once = path
            self.show_problem(f"{path.name} already exists; press Save again to replace it")
        else:
            self.dismiss(path)
