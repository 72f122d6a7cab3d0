"""Searches by words: of the list that has the focus, line by line, and of all commands in the command line.

The commands are the keys of the screen, scenarios, runs and themes.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeGuard

from textual import on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding
from textual.command import CommandPalette, Hit, Hits, SearchIcon
from textual.containers import Horizontal
from textual.screen import ModalScreen, Screen
from textual.system_commands import SystemCommandsProvider
from textual.widget import Widget
from textual.widgets import Input, OptionList, SelectionList, Static

from tui.screens.dialog import Closing
from tui.screens.home import HomeScreen
from tui.screens.navigation import Navigator
from tui.state.catalogue import Entry
from tui.style.formats import matches
from tui.style.key_names import MOVES, label, once, purpose, working, written
from tui.widgets.line_view import LineView

Listing = LineView | OptionList

HINT, NO_HIT = "enter stays there, esc goes back", "no line has these words"


class _Field(Input):
    """The words that are searched for."""

    BINDINGS = [Binding("space", "screen.mark", priority=True)]


class SearchLine(Closing[Sequence[str]]):
    """Asks for words; the result is the words, or None to forget them."""

    BINDINGS = [
        Binding("escape", "cancel", "Cancel"),
        Binding("tab", "leave('tab')", show=False),
        Binding("shift+tab", "leave('shift+tab')", show=False),
    ]
    DEFAULT_CSS = """
    SearchLine { background: transparent; }
    SearchLine Horizontal { dock: bottom; height: 1; background: $panel; }
    SearchLine Static { width: auto; padding: 0 1; }
    SearchLine Input { width: 1fr; background: $boost; }
    """

    def __init__(self, listing: Listing, sought: Sequence[str], begun: str = "") -> None:
        """Search a list, for what is typed or has begun to be; enter alone searches for ``sought``, the last words."""
        super().__init__()
        self._begun, self._hits = begun, True
        self._listing, self._sought, self._began = listing, sought, place(listing)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static("/")
            yield _Field(self._begun, placeholder=" ".join(self._sought), compact=True, select_on_focus=False)
            yield Static(self._hint, id="hint")

    @property
    def _hint(self) -> str:
        return f"space marks it, {HINT}" if isinstance(self._listing, SelectionList) else HINT

    @property
    def _words(self) -> Sequence[str]:
        return self.query_one(Input).value.lower().split()

    @on(Input.Changed)
    def _look(self) -> None:
        words = self._words
        self._hits = not words or seek(self._listing, words, self._began)
        if not words or not self._hits:
            go_to(self._listing, self._began)
        self.query_one("#hint", Static).update(self._hint if self._hits else NO_HIT)

    @on(Input.Submitted)
    def _keep(self) -> None:
        words = self._words
        if not words and self._sought:
            seek(self._listing, self._sought, self._began + 1)
        self.dismiss(words or self._sought)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is of use: a line is marked in a list for it, if it is one that has the words."""
        marks = isinstance(self._listing, SelectionList) and self._hits
        return marks if action == "mark" else True

    def action_mark(self) -> None:
        """Mark the line, or unmark it, and leave the search, so that the next letter begins another."""
        assert isinstance(self._listing, SelectionList)  # noqa: S101 - see check_action
        self._listing.action_select()
        self.dismiss(self._words or self._sought)

    async def action_leave(self, key: str) -> None:
        """Leave the search where it is, and do what the key does below it."""
        below = self._listing.screen.active_bindings[key]
        self.dismiss(self._words or self._sought)
        await self.app.run_action(below.binding.action, below.node)

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
        listing.go_to(index)
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


class Commands(SystemCommandsProvider):
    """Finds commands by their names, as Textual does, and by what is said of them, too."""

    async def search(self, query: str) -> Hits:
        matcher, words = self.matcher(query), query.lower().split()
        for name, said, run, _ in self.app.get_system_commands(self.screen):
            # One that is named so comes before one of which it is said.
            if score := matcher.match(name) or 0.1 * matches(f"{name} {said}", words):
                yield Hit(score, matcher.highlight(name), run, help=said)


class Palette(CommandPalette, Closing[None]):
    """Textual's command palette."""

    def __init__(self) -> None:
        super().__init__([Commands], placeholder="a command, scenario, run or theme …")

    def on_mount(self) -> None:
        self.query_one(SearchIcon).icon = ":"  # not every terminal has Textual's magnifying glass


def commands(app: App[Any], navigator: Navigator, home: HomeScreen, screen: Screen[object]) -> Iterator[SystemCommand]:
    """Yield the commands that make sense on a screen."""
    yield from _keys(app, screen)
    for name in app.available_themes:
        yield SystemCommand(f"Theme {name}", "colours", partial(setattr, app, "theme", name))
    if not isinstance(screen, ModalScreen):  # a dialog is answered first
        for session in navigator.sessions:
            show = partial(navigator.show_market, session)
            yield SystemCommand(f"Go to {session.label}", session.state, show)
        folder = navigator.batch
        yield SystemCommand("Watch all runs", f"the batch in {folder}", lambda: navigator.show_batch(folder))
        for entry in home.entries:
            yield from _entry(navigator, home, entry)


def _keys(app: App[Any], screen: Screen[object]) -> Iterator[SystemCommand]:
    for active in once(working(screen)):
        binding, said = active.binding, purpose(screen, active)
        if said and said not in MOVES and binding.action != "command_palette":
            run = partial(app.run_action, binding.action, active.node)
            yield SystemCommand(label(screen, binding), f"key {written(binding)} · {said}", run)


def _entry(navigator: Navigator, home: HomeScreen, entry: Entry) -> Iterator[SystemCommand]:
    if entry.kind == "beginning":  # has a key
        return
    if entry.is_run:
        yield SystemCommand(
            f"Open run {entry.name}", entry.state, lambda: navigator.show_market(navigator.runs.open(entry.path))
        )
        return
    if entry.kind == "training":
        yield SystemCommand(f"Watch training {entry.name}", entry.age, lambda: navigator.show_trainings([entry.path]))
        return
    own = entry.kind == "file"
    yield SystemCommand(f"Run {entry.name}", entry.kind, partial(home.run_file, entry.path))
    yield SystemCommand(f"Edit {entry.name}", entry.kind, partial(home.edit_file, entry.path, own=own))
