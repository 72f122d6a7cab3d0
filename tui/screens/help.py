"""The help for the panel or screen that has the focus, and the keys that work there."""

import re
from collections.abc import Iterable

from rich.table import Table
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.style.key_bindings import purposes


class HelpScreen(ModalScreen[None]):
    """Shows a help text, then the keys."""

    BINDINGS = [Binding("escape,question_mark,f1,q", "app.pop_screen", "Close", key_display="esc")]

    def __init__(self, title: str, words: str, keys: Iterable[tuple[str, str]]) -> None:
        super().__init__()
        self._title, self.words, self._keys = title, flowing(words), list(keys)

    @classmethod
    def on(cls, app: App[None]) -> "HelpScreen":
        """Return the help for what has the focus, or else for the screen."""
        title, words = "flmarket", ""
        around = app.focused.ancestors_with_self if app.focused else [app.screen]
        for widget in around:
            if text := getattr(widget, "HELP", None):
                title, words = str(getattr(widget, "NAME", "") or type(widget).__name__.removesuffix("Screen")), text
                break
        return cls(title, words, [(" ".join(keys), purpose) for purpose, keys in purposes(app.screen).items()])

    def compose(self) -> ComposeResult:
        keys = Table(box=None, show_header=False, pad_edge=False)
        keys.add_column(style="bold", justify="right")
        keys.add_column()
        for key, words in self._keys:
            keys.add_row(key, words)
        with VerticalScroll(classes="box help"):
            yield Static(f"[b]{self._title}[/b]   (esc closes)")
            yield Static(self.words)
            yield Static("\n[b]Keys here[/b]")
            yield Static(keys)


def flowing(words: str) -> str:
    """Return a text whose paragraphs are a line each, which the screen breaks where it is as wide as that.

    A line that begins with a key (``[b]``) or is indented is one of its own.
    """
    return re.sub(r"(?<=\S)\n(?=[^\s\[]|\[(?!b\]))", " ", words)
