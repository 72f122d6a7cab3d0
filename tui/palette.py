"""What the command palette offers besides Textual's own: every key of the screen, every scenario, every run."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.screen import ModalScreen, Screen

if TYPE_CHECKING:
    from tui.app import MarketApp


def commands(app: "MarketApp", screen: Screen[object]) -> Iterator[SystemCommand]:
    """Yield the commands that make sense on a screen."""
    yield from _keys(app, screen)
    if not isinstance(screen, ModalScreen):  # a dialog is answered first
        yield from _places(app)


def _keys(app: "MarketApp", screen: Screen[object]) -> Iterator[SystemCommand]:
    """Yield what the keys of a screen do."""
    offered: set[str] = set()
    for active in screen.active_bindings.values():
        binding = active.binding
        if not active.enabled or not binding.description or binding.action in offered:
            continue
        offered.add(binding.action)
        key = app.get_key_display(binding)
        run = partial(app.run_action, binding.action, active.node)
        yield SystemCommand(binding.description, f"key {key}", run)


def _places(app: "MarketApp") -> Iterator[SystemCommand]:
    """Yield the ways to the runs that are open, to the scenarios, and to earlier runs."""
    for session in app.runs.sessions:
        yield SystemCommand(f"Go to {session.label}", session.phase.value, partial(app.show_market, session))
    for entry in app.home.entries:
        if entry.is_run:
            yield SystemCommand(f"Open run {entry.name}", entry.state, partial(app.home.open, entry))
        else:
            yield SystemCommand(f"Run {entry.name}", entry.kind, partial(app.home.run, entry))
            yield SystemCommand(f"Edit {entry.name}", entry.kind, partial(app.home.edit, entry))
