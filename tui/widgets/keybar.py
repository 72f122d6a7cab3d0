"""The line of keys at the bottom of every screen.

Textual's own ``Footer`` makes a widget of each key, makes them all anew whenever the focus moves, and keeps the old
ones as long as the screen lives (Textual's issue 6666). This one is a line of text.
"""

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.screen import Screen
from textual.widget import Widget

from tui.widgets.keys import once, working


class KeyBar(Widget):
    """Shows the keys of the screen and of what has the focus; a click on one presses it."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"key-bar--key", "key-bar--words"}
    DEFAULT_CSS = """
    KeyBar { dock: bottom; height: 1; background: $panel; text-wrap: nowrap; text-overflow: clip; }
    KeyBar .key-bar--key { color: $footer-key-foreground; background: $panel; text-style: bold; }
    KeyBar .key-bar--words { color: $footer-description-foreground; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[tuple[str, str, str]] = []  # of each: its name, how it is written, and what it does

    def on_mount(self) -> None:
        """Follow the keys that the screen offers."""
        self.screen.bindings_updated_signal.subscribe(self, self._follow)
        self._follow(self.screen)

    def _follow(self, screen: Screen[object]) -> None:
        if not self.is_attached or screen is not self.screen:
            return
        shown = [active.binding for active in once(active for active in working(screen) if active.binding.show)]
        keys = [(binding.key, self.app.get_key_display(binding), binding.description) for binding in shown]
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    def render(self) -> Text:
        """Return the line."""
        key_style = self.get_component_rich_style("key-bar--key")
        style = self.get_component_rich_style("key-bar--words")
        line = Text(no_wrap=True)
        for _, key, words in self._keys:
            line.append(key, key_style).append(f" {words} ", style)
        return line

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse."""
        end = 0
        for name, key, words in self._keys:
            end += cell_len(key) + cell_len(words) + 2
            if event.x < end:
                self.app.simulate_key(name)
                return
