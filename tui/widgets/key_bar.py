"""The line of keys at the bottom of every screen: about five, of what has the focus first.

Textual's own ``Footer`` makes a widget of each key, makes all of them again whenever the focus moves, and keeps the old
ones as long as the screen lives (Textual's issue 6666). This one is a line of text.
"""

from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from tui.style.key_names import label, once, working
from tui.textual_internals import character_to_key

LEAST = Size(60, 16)  # the size below which a terminal is too small

BACK, QUIT = {"back", "app.pop_screen", "cancel"}, {"app.quit", "quit"}
ALWAYS = {"app.help", "help"} | BACK | QUIT
"""The actions whose keys are shown however little room there is; that to quit only where no key leads back."""

FEW = 5  # other keys in the line: as many as one reads at a glance


class KeyOnBar(NamedTuple):
    """A key in the line: its name, how it is written, and what it does."""

    name: str
    written: str
    words: str
    action: str

    @property
    def width(self) -> int:
        return cell_len(self.written) + cell_len(self.words) + 2

    def under(self, x: int) -> str:
        """Return the name of the key under the mouse, of those that are written together, such as ``[ ]``."""
        character = self.written[x : x + 1].strip()
        return character_to_key(character) if character and " " in self.written else self.name


MORE = KeyOnBar("f1", "…", "", "")  # stands for keys that are left out; help lists them


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
        self._keys: list[KeyOnBar] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._follow)
        self._follow(self.screen)

    def _follow(self, screen: Screen[object]) -> None:
        if not self.is_attached or screen is not self.screen:
            return
        shown = [active.binding for active in once(active for active in working(screen) if active.binding.show)]
        keys = [KeyOnBar(one.key, self.app.get_key_display(one), label(screen, one), one.action) for one in shown]
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    @property
    def shown(self) -> list[KeyOnBar]:
        """The first keys, as far as there is room for them; those that lead out and to help always are there."""
        leads_back = any(key.action in BACK for key in self._keys)
        keys = [key for key in self._keys if not (leads_back and key.action in QUIT)]
        left = [key for key in keys if key.action not in ALWAYS]
        while left and (len(left) > FEW or sum(key.width for key in keys) > self.size.width):
            last = left.pop()
            at = keys.index(last)
            more = keys[at + 1 : at + 2] == [MORE]
            keys[at : at + 1 + more] = [MORE]
        return keys

    def render(self) -> Text:
        key_style = self.get_component_rich_style("key-bar--key")
        style = self.get_component_rich_style("key-bar--words")
        line = Text(no_wrap=True)
        if self.app.size.width < LEAST.width or self.app.size.height < LEAST.height:
            line.append(f"{self.app.size.width} x {self.app.size.height} is too small; ", key_style)
            return line.append("80 x 24 shows all", style)
        for _, key, words, _ in self.shown:
            line.append(key, key_style).append(f" {words} ", style)
        return line

    def on_click(self, event: events.Click) -> None:
        end = 0
        for key in self.shown:
            begin, end = end, end + key.width
            if event.x < end:
                self.app.simulate_key(key.under(event.x - begin))
                return
