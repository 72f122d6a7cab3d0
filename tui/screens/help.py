"""The help for the panel or screen that has the focus, with the keys that work there, and a search for any other."""

import re
from collections.abc import Callable, Iterable, Sequence

from rich.table import Table
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from tui.screens.dialog import Closing
from tui.style.formats import matches
from tui.style.key_bindings import purposes

Row = tuple[str, str, str]  # keys, what they are for, and where


class HelpScreen(Closing[None]):
    """Shows a help text, then the keys; while one searches, of all screens those keys that are found."""

    BINDINGS = [
        Binding("escape,question_mark,f1,q", "close", "Close", key_display="esc"),
        Binding("slash", "search", "Search", tooltip="Search the keys of all screens"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(
        self, title: str, words: str, keys: Iterable[tuple[str, str]], every: Callable[[], Iterable[Row]]
    ) -> None:
        """Show help; ``every`` returns the keys of all screens, which takes imports."""
        super().__init__()
        self._title, self.words, self._keys, self._every = title, flowing(words), list(keys), every
        self._all: Sequence[Row] = ()

    @classmethod
    def of_focus(cls, app: App[None], every: Callable[[], Iterable[Row]]) -> "HelpScreen":
        title, words = "flmarket", ""
        around = app.focused.ancestors_with_self if app.focused else [app.screen]
        for widget in around:
            if text := getattr(widget, "HELP", None):
                title, words = str(getattr(widget, "NAME", "") or type(widget).__name__.removesuffix("Screen")), text
                break
        return cls(title, words, [(" ".join(keys), it) for it, keys in purposes(app.screen).items()], every)

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box help"):
            yield Static(f"[b]{self._title}[/b]   (esc closes, / searches the keys of all screens)")
            yield Input(placeholder="words such as fork or pause, or a key such as O", compact=True)
            yield Static(self.words, classes="of-focus")
            yield Static("\n[b]Keys here[/b]", classes="of-focus")
            yield Static(_table(self._keys), id="keys")

    def action_search(self) -> None:
        self._all = self._all or list(self._every())
        self.add_class("-searching")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        words = event.value.split()
        self.query(".of-focus").set(display=not words)
        found = [row for row in self._all if all(_has(row, word) for word in words)]
        rows: Iterable[Sequence[str]] = (found or [("", "No key has these words.", "")]) if words else self._keys
        self.query_one("#keys", Static).update(_table(rows))

    @on(Input.Submitted)
    def _searched(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        if self.has_class("-searching"):
            self.remove_class("-searching")
            self.query_one(Input).value = ""
            self._searched()
        else:
            self.dismiss()


def _has(row: Row, word: str) -> bool:
    """Whether a key is written as a word, or what is said of it has the word; that of one letter is a key."""
    return word in row[0].split() or (len(word) > 1 and matches(" ".join(row), [word.lower()]))


def _table(rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def flowing(words: str) -> str:
    """Return a text whose paragraphs are a line each, which the screen breaks where it is as wide as that.

    A line that begins with a key (``[b]``) or is indented is one of its own.
    """
    return re.sub(r"(?<=\S)\n(?=[^\s\[]|\[(?!b\]))", " ", words)
