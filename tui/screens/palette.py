"""The command line: every key of the screen, every scenario, every run and every theme, found by words."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from textual.app import App, SystemCommand
from textual.command import CommandPalette, Hit, Hits, SearchIcon
from textual.screen import ModalScreen, Screen
from textual.system_commands import SystemCommandsProvider

from tui.screens.dialog import Closing
from tui.screens.home import HomeScreen
from tui.screens.navigation import Navigator
from tui.state.catalogue import Entry
from tui.style.formats import matches
from tui.style.key_bindings import MOVES, label, once, purpose, working, written


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
