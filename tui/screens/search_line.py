"""The line in which one searches the list that has the focus: the cursor goes to the first hit as one types."""

from collections.abc import Sequence
from typing import TypeGuard

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from tui.screens.dialog import Closing
from tui.style.formats import matches
from tui.widgets.line_view import LineView

Listing = LineView | OptionList

HINT, NO_HIT = "enter stays there, esc goes back", "no line has these words"


class SearchLine(Closing[Sequence[str]]):
    """Asks for words; the result is the words, or None to forget them."""

    BINDINGS = [Binding("escape", "cancel", "Cancel")]
    DEFAULT_CSS = """
    SearchLine { background: transparent; }
    SearchLine Horizontal { dock: bottom; height: 1; background: $panel; }
    SearchLine Static { width: auto; padding: 0 1; }
    SearchLine Input { width: 1fr; background: $boost; }
    """

    def __init__(self, listing: Listing, sought: Sequence[str]) -> None:
        """Search a list; ``sought`` are the words of the last search, which are searched for again by enter alone."""
        super().__init__()
        self._listing, self._sought, self._began = listing, sought, place(listing)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static("/")
            yield Input(placeholder=" ".join(self._sought), compact=True)
            yield Static(HINT, id="hint")

    @on(Input.Changed)
    def _look(self, event: Input.Changed) -> None:
        words = event.value.lower().split()
        hit = bool(words) and seek(self._listing, words, self._began)
        if not hit:
            go_to(self._listing, self._began)
        self.query_one("#hint", Static).update(HINT if hit or not words else NO_HIT)

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        words = event.value.lower().split()
        if not words and self._sought:
            seek(self._listing, self._sought, self._began + 1)
        self.dismiss(words or self._sought)

    def action_cancel(self) -> None:
        go_to(self._listing, self._began)
        self.dismiss(None)


def is_listing(widget: Widget) -> TypeGuard[Listing]:
    return isinstance(widget, Listing)


def next_hit(listing: Listing, words: Sequence[str], step: int) -> bool:
    """Go to the next line, or for a step of -1 the one before, that has all the words; return whether there is one."""
    return seek(listing, words, place(listing) + step, step)


def place(listing: Listing) -> int:
    return listing.cursor if isinstance(listing, LineView) else listing.highlighted or 0


def go_to(listing: Listing, index: int) -> None:
    if isinstance(listing, LineView):
        listing.cursor = index
    else:
        listing.highlighted = index


def seek(listing: Listing, words: Sequence[str], begin: int, step: int = 1) -> bool:
    """Go to the first line with all the words from a place on, past the end if need be; return whether there is one."""
    count = listing.count if isinstance(listing, LineView) else listing.option_count
    for index in ((begin + step * i) % count for i in range(count)):
        if _has(listing, index, words):
            go_to(listing, index)
            return True
    return False


def _has(listing: Listing, index: int, words: Sequence[str]) -> bool:
    if isinstance(listing, LineView):
        return matches(listing.copied(index), words)
    option = listing.get_option_at_index(index)
    return not option.disabled and matches(str(option.prompt), words)
