"""The help for the panel or screen that has the focus, with the keys that work there, and a search for any other.

Keys of screens have names, by which settings can change them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_type_hints

from rich.table import Table
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Input, Static

from flmarket.core.names import unknown
from tui import screens
from tui.screens.dialog import Closing, Dialog, MarkList
from tui.screens.home import HomeScreen
from tui.style.formats import matches
from tui.style.key_names import VIM, purposes, written
from tui.widgets.line_view import LineView

Row = tuple[str, str, str]  # keys, what they are for, and where


class HelpScreen(Closing[None]):
    """Shows a help text, then the keys; while one searches, of all screens those keys that are found."""

    BINDINGS = [
        Binding("escape,question_mark,f1,q", "close", "Close", key_display="esc"),
        Binding("slash", "search", "Search", tooltip="Search the keys of all screens"),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(
        self,
        title: str,
        words: str,
        keys: Iterable[tuple[str, str]],  # those that work where it is asked for
        changed: Mapping[str, str],  # the keys that the user has changed, by their names
    ) -> None:
        super().__init__()
        self._title, self.words, self.keys, self._changed = title, flowing(words), list(keys), changed
        self._all: Sequence[Row] = ()

    @classmethod
    def of_focus(cls, app: App[None], changed: Mapping[str, str]) -> "HelpScreen":
        title, words = "flmarket", ""
        around = app.focused.ancestors_with_self if app.focused else [app.screen]
        for widget in around:
            if text := getattr(widget, "HELP", None):
                title, words = str(getattr(widget, "NAME", "") or type(widget).__name__.removesuffix("Screen")), text
                break
        return cls(title, words, [(" ".join(keys), it) for it, keys in purposes(app.screen).items()], changed)

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box help"):
            yield Static(f"[b]{self._title}[/b]   (esc closes, / searches the keys of all screens)")
            yield Input(placeholder="words such as fork or pause, or a key such as O", compact=True)
            yield Static(self.words, classes="of-focus")
            yield Static("\n[b]Keys here[/b]", classes="of-focus")
            yield Static(_table(self.keys), id="keys")

    def action_search(self) -> None:
        self._all = self._all or list(every_key(self.app, self._changed))  # takes imports
        self.add_class("-searching")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        words = event.value.split()
        self.query(".of-focus").set(display=not words)
        hits = [row for row in self._all if all(_has(row, word) for word in words)]
        rows: Iterable[Sequence[str]] = (hits or [("", "No key has these words.", "")]) if words else self.keys
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


def unknown_key(name: str) -> str:
    """Return what is wrong with the name of a key, such as ``market.next-round``; empty if nothing is."""
    names = [binding.id for screen in _screens() for binding in _described(screen) if binding.id]
    return "" if name in names else unknown("name", name, names)


def every_key(app: App[None], changed: Mapping[str, str]) -> Iterator[Row]:
    """Yield all keys, with what each is for and where it works; some have been changed, by their names."""
    for where, bindings in _places(app):
        keys: dict[str, list[str]] = {}  # by what they are for
        for binding in bindings:
            for key in changed.get(binding.id or "", binding.key).split(","):
                keys.setdefault(binding.tooltip or binding.description, []).append(written(Binding(key.strip(), "")))
        yield from ((" ".join(dict.fromkeys(several)), words, where) for words, several in keys.items())
    vim = " ".join("gg" if key == "g" else key for pair in VIM for key in pair)
    yield vim, "Move as the arrows, ctrl+home and ctrl+end do, where nothing else has these keys", "lists"


def _screens() -> Sequence[type[Screen[None]]]:
    return (
        HomeScreen,
        screens.ConfigureScreen,
        screens.MarketScreen,
        screens.CompareScreen,
        screens.BatchScreen,
        screens.TrainingScreen,
    )


def _places(app: App[None]) -> Iterator[tuple[str, Iterable[Binding]]]:
    """Yield each screen, panel and part of one by its name in help, with its keys."""
    for screen in _screens():
        yield screen.__name__.removesuffix("Screen"), _described(screen)
        for panel in screens.MarketScreen.PARTS if screen is screens.MarketScreen else ():
            yield panel.NAME, _described(panel)
            if (target := get_type_hints(vars(panel)["target"].fget)["return"]) is not LineView:
                yield panel.NAME, _described(target)
    yield "lists", _described(LineView)
    yield "lists with boxes", _described(MarkList)
    yield "dialogs", _described(Dialog)
    yield "everywhere", [binding for binding in app.BINDINGS if isinstance(binding, Binding)]


def _described(node: type[DOMNode]) -> Iterator[Binding]:
    """Yield the keys of a screen or a part of one; those that only repeat one of the screen's are left out."""
    bindings = (binding for binding in vars(node).get("BINDINGS", ()) if isinstance(binding, Binding))
    return (binding for binding in bindings if not binding.action.startswith("screen."))
