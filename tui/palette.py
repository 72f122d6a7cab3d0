"""The palette's commands in addition to Textual's own: every key of the screen, every scenario, every run."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.command import CommandPalette
from textual.screen import ModalScreen, Screen
from textual.widgets import OptionList

from tui.screens.home import HomeScreen
from tui.screens.navigation import Navigator
from tui.style.key_bindings import once, working

if TYPE_CHECKING:
    from tui.state.catalogue import Entry


class Palette(CommandPalette):
    """Textual's command palette; there, page up and page down fail while the list is not shown yet."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(OptionList).scrollable_content_region:
            super()._action_command_list(action)


def commands(app: App[Any], navigator: Navigator, home: HomeScreen, screen: Screen[object]) -> Iterator[SystemCommand]:
    """Yield the commands that make sense on a screen."""
    yield from _keys(app, screen)
    for name in app.available_themes:
        yield SystemCommand(f"Theme {name}", "colours", partial(setattr, app, "theme", name))
    if not isinstance(screen, ModalScreen):  # a dialog is answered first
        for session in navigator.runs.sessions:
            show = partial(navigator.show_market, session)
            yield SystemCommand(f"Go to {session.label}", session.state, show)
        yield SystemCommand("Watch all runs", str(navigator.out), lambda: navigator.show_batch(navigator.out))
        for entry in home.entries:
            yield from _entry(navigator, home, entry)


def _keys(app: App[Any], screen: Screen[object]) -> Iterator[SystemCommand]:
    for active in once(working(screen)):
        binding = active.binding
        key = app.get_key_display(binding)
        run = partial(app.run_action, binding.action, active.node)
        yield SystemCommand(binding.description, f"key {key}", run)


def _entry(navigator: Navigator, home: HomeScreen, entry: "Entry") -> Iterator[SystemCommand]:
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
