"""The dialog that asks for a round to go to."""

from collections.abc import Callable

from textual import on
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widgets import Button, Input, Static

from flmarket.core.counting import counted
from tui.screens.dialog import Box, Dialog
from tui.state.history import History


class GotoDialog(Dialog[int]):
    """Asks for a round that has been played; the result is its number."""

    NAME = "Go to round"
    HELP = """Type the number of a round that has been played, and press [b]enter[/b]. The run continues meanwhile."""
    AUTO_FOCUS = "#round"

    def __init__(self, history: History, shown: int) -> None:
        super().__init__()
        self._history, self._at = history, shown

    def compose(self) -> ComposeResult:
        with Box():
            yield Static("[b]Go to round[/b]")
            yield Input(str(self._at), id="round", compact=True)
            yield Static(Content(f"{counted(len(self._history), 'round')} played"), id="played")
            yield from self.answers("Go")

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        text, last = self.query_one("#round", Input).value.strip(), len(self._history)
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            self.show_problem(f"enter the number of a round, from 1 to {last}")
        elif not 1 <= int(text) <= last:
            self.show_problem(f"round {int(text)} has not been played; choose one from 1 to {last}")
        else:
            self.dismiss(int(text))


def ask_for_round(app: App[object], history: History, shown: int, go: Callable[[int], None]) -> None:
    """Ask for a round, and call ``go`` with it; say so if there is none yet."""
    if not len(history):
        app.notify("No round has been played yet.", timeout=3)
        return

    def chosen(number: int | None) -> None:
        if number is not None:
            go(number)

    app.push_screen(GotoDialog(history, shown), chosen)
