"""The base of all dialogs: a centred box, lists and boxes to tick, a line for problems; and questions at the end."""

from collections.abc import Iterable
from typing import TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.geometry import Offset
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Static
from textual.widgets.button import ButtonVariant

from tui.style.colors import BAR, barred
from tui.style.key_names import HELP, SEARCH, SearchedByTyping
from tui.textual_internals import Value, WideGutterList
from tui.widgets.key_bar import KeyBar

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

    def answers(
        self, go: str, cancel: str = "Cancel", variant: ButtonVariant = "primary", between: Iterable[Button] = ()
    ) -> ComposeResult:
        """Lay out the line for problems and the buttons; ``go`` and ``cancel`` are labels of the first and the last."""
        yield Static("", classes="problem")
        with Horizontal(classes="buttons"):
            yield Button(go, variant=variant, id="go", compact=True)
            yield from between
            yield Button(cancel, id="cancel", compact=True)

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        self.dismiss(None)

    def show_problem(self, problem: str) -> None:
        """Show what is wrong; an empty text if nothing is."""
        self.query_one(".problem", Static).update(Content(problem))
        self.call_after_refresh(self.query_one(Box).fit)


class QuitDialog(Dialog[bool]):
    """Asks whether to stop the live runs; the result is True or None."""

    BINDINGS = [Binding("y", "agree", "Yes"), Binding("n", "cancel", "Stay")]

    def __init__(self, running: int) -> None:
        super().__init__()
        self._runs = "A run is" if running == 1 else f"{running} runs are"

    def compose(self) -> ComposeResult:
        with Box():
            kept = "The rounds played so far stay on disk, for a replay or to resume from."
            yield Static(f"[b]{self._runs} still live.[/b]\n{kept}")
            yield from self.answers("Quit and stop (y)", "Stay (n)", "error")

    @on(Button.Pressed, "#go")
    def action_agree(self) -> None:
        self.dismiss(True)


class LeaveDialog(Dialog[bool]):
    """Asks what becomes of changes when a form is left: True saves them, False discards them, None stays."""

    BINDINGS = [
        Binding("s", "dismiss(True)", "Save"),
        Binding("d", "dismiss(False)", "Discard"),
        Binding("n", "cancel", "Stay"),
    ]

    def compose(self) -> ComposeResult:
        with Box():
            yield Static("[b]The changes are not saved.[/b]")
            discard = Button("Discard (d)", variant="error", id="discard", compact=True)
            yield from self.answers("Save (s)", "Stay (n)", between=[discard])

    @on(Button.Pressed, "#go, #discard")
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "go")


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Jump(Closing[Widget | int]):
    """Shows a letter at each of some widgets; the result is the one whose letter is pressed, or how to scroll first."""

    BINDINGS = [
        Binding("escape", "dismiss(None)", "Cancel"),
        Binding("pagedown", "dismiss(1)", "Scroll down"),
        Binding("pageup", "dismiss(-1)", "Scroll up"),
    ]

    def __init__(self, places: Iterable[tuple[Widget, Offset]]) -> None:
        super().__init__()
        self._places = dict(zip(LETTERS, places, strict=False))

    def compose(self) -> ComposeResult:
        for letter, (_, offset) in self._places.items():
            mark = Static(letter)
            mark.absolute_offset = offset
            yield mark

    def on_key(self, event: Key) -> None:
        if event.character in self._places:
            event.stop()
            self.dismiss(self._places[event.character][0])


class MarkList(SearchedByTyping, WideGutterList[Value]):
    """A list in which several entries can be marked: ``[x]`` or ``[ ]``. Enter presses the dialog's primary button."""

    BINDINGS = [Binding("enter", "go", "Go", key_display="enter", tooltip="Continue with what is marked")]

    def action_go(self) -> None:
        if not self.selected and self.highlighted is not None:
            self.select(self.get_option_at_index(self.highlighted))
        self.call_after_refresh(self._press)  # which button that is depends on what is marked

    def _press(self) -> None:
        self.screen.query_one("Button.-primary", Button).press()

    def describe(self, place: int, name: str, words: str) -> None:
        """Say what an entry is, behind its name."""
        self.replace_option_prompt_at_index(place, Content.assemble(f"{name:14}  ", (words, "$text-muted")))

    def render_line(self, y: int) -> Strip:
        strip, place = barred(self, super().render_line(y)), self.scroll_offset.y + y
        if place >= self.option_count:
            return strip
        bar, _, _, blank, *rest = strip
        style = (blank.style or Style()) + Style(meta={"option": place})  # which a click on the box marks
        box = "[x]" if self.get_option_at_index(place).value in self.selected else "[ ]"
        left = bar if bar.text == BAR else blank
        return Strip([left, Segment(box, style), blank, *rest])


class Tick(Checkbox):
    """A checkbox: ``[x]`` or ``[ ]``."""

    DEFAULT_CSS = """
    Tick > .toggle--button { color: $text-muted; background: $boost; }
    Tick.-on > .toggle--button { color: $text-success; background: $boost; text-style: bold; }
    """

    def render(self) -> Content:
        style = self.get_visual_style("toggle--button")
        box = ("[", style), ("x" if self.value else " ", style), ("]", style)
        return Content.assemble(*box, self.label.pad(1, 1).stylize_before(self.get_visual_style("toggle--label")))
