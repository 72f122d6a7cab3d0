"""What all dialogs share: a box in the middle, a line for problems, and esc to leave."""

from typing import TypeVar

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

Result = TypeVar("Result")


class Box(VerticalScroll, can_focus=False):
    """The box. It scrolls where it has to, and is no stop for the tab key."""

    def __init__(self) -> None:
        super().__init__(classes="box")


class Dialog(ModalScreen[Result | None]):
    """A box in the middle of the screen; esc leaves it without a result."""

    BINDINGS = [Binding("escape", "cancel", "Cancel")]

    def action_cancel(self) -> None:
        """Leave without a result."""
        self.dismiss(None)

    def complain(self, problem: str) -> None:
        """Say what is wrong, in the dialog's own line for it."""
        self.query_one(".problem", Static).update(problem.replace("[", r"\["))
