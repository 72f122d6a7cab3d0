"""The base of all dialogs: a centred box, a line for problems, esc to cancel; and a dialog for yes-or-no questions."""

from typing import TypeVar

from textual import on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static
from textual.widgets.button import ButtonVariant

from tui.style.key_bindings import HELP, SEARCH
from tui.widgets.key_bar import KeyBar
from tui.widgets.tick_boxes import MarkList

Result = TypeVar("Result")


class Box(VerticalScroll, can_focus=False):
    """The box, as tall as its contents. It scrolls if it must, and the tab key skips it."""

    def __init__(self) -> None:
        super().__init__(classes="box")

    def fit(self) -> None:
        """Give a list in the box all the rows that the rest of it leaves."""
        # Textual makes a box as tall as a list would be without its limits.
        for options in self.query(MarkList):
            others = [child for child in self.displayed_children if child is not options]
            rest = sum(child.outer_size.height + child.styles.margin.height for child in others)
            room = self.screen.size.height - rest - self.gutter.height - options.styles.margin.height
            options.styles.height = max(3, min(options.option_count, room - 1))  # below is the line of keys


class Closing(ModalScreen[Result]):
    """A screen that closes itself, and not also the one below if enter, esc and clicks come faster than it goes."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Dialog(Closing[Result | None]):
    """A box in the centre of the screen; esc leaves it without a result."""

    BINDINGS = [
        Binding("escape", "cancel", "Cancel"),
        *HELP,
        *SEARCH,
    ]

    def on_mount(self) -> None:
        self.mount(KeyBar())

    def on_resize(self) -> None:
        self.call_after_refresh(self.query_one(Box).fit)

    def answers(self, go: str, cancel: str = "Cancel", variant: ButtonVariant = "primary") -> ComposeResult:
        """Lay out the line for problems and the buttons; ``go`` and ``cancel`` are their labels."""
        yield Static("", classes="problem")
        with Horizontal(classes="buttons"):
            yield Button(go, variant=variant, id="go", compact=True)
            yield Button(cancel, id="cancel", compact=True)

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        self.dismiss(None)

    def show_problem(self, problem: str) -> None:
        """Show what is wrong; an empty text if nothing is."""
        self.query_one(".problem", Static).update(Content(problem))
        self.call_after_refresh(self.query_one(Box).fit)


class Question(Dialog[bool]):
    """A question that is answered with y or n; the result is True or None."""

    BINDINGS = [Binding("y", "agree", "Yes"), Binding("n", "cancel", "Stay")]

    def __init__(self, text: str, yes: str) -> None:
        """Ask, in a text with markup; ``yes`` is the label of the button that agrees."""
        super().__init__()
        self._text, self._yes = text, yes

    def compose(self) -> ComposeResult:
        with Box():
            yield Static(self._text)
            yield from self.answers(f"{self._yes} (y)", "Stay (n)", "error")

    @on(Button.Pressed, "#go")
    def action_agree(self) -> None:
        self.dismiss(True)


class QuitDialog(Question):
    """Asks whether to stop the live runs."""

    def __init__(self, running: int) -> None:
        runs = "A run is" if running == 1 else f"{running} runs are"
        text = f"[b]{runs} still live.[/b]\nThe rounds played so far stay on disk, for a replay or to resume from."
        super().__init__(text, "Quit and stop")
