"""The names of keys, by which a user's settings change them; what help says of keys, which work now, and vim's.

The keys themselves stand in each screen's ``BINDINGS``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from textual.binding import ActiveBinding, Binding, BindingType
from textual.keys import format_key
from textual.screen import Screen


def named(screen: str, bindings: Iterable[Binding]) -> list[BindingType]:
    """Return a screen's bindings with names such as ``market.next-round``: the screen and what the line of keys says.

    In a description, a colon comes before what help says. Where two keys do the same, the first has the name.
    """
    with_names: list[BindingType] = []
    names: set[str] = set()
    for whole in bindings:
        words, _, purpose = whole.description.partition(": ")
        name = f"{screen}.{'-'.join(words.lower().replace('/', ' ').split())}"
        binding = replace(whole, description=words, tooltip=whole.tooltip or purpose)
        with_names.append(binding if name in names else replace(binding, id=name))
        names.add(name)
    return with_names


def working(screen: Screen[Any]) -> Iterator[ActiveBinding]:
    """Yield the keys that do something on a screen now, and are described."""
    return (active for active in screen.active_bindings.values() if active.enabled and active.binding.description)


def once(keys: Iterable[ActiveBinding]) -> Iterator[ActiveBinding]:
    """Yield the first of the keys for each action."""
    first: dict[str, ActiveBinding] = {}
    for key in keys:
        first.setdefault(key.binding.action, key)
    return iter(first.values())


def label(screen: Screen[Any], binding: Binding) -> str:
    """Return what a key does, in a word; on some screens it depends on what they show."""
    return getattr(screen, "labels", {}).get(binding.action, binding.description)  # type: ignore[no-any-return]


VIM = (
    {"k": ("up",), "j": ("down",)},
    {"h": ("left",), "l": ("right",)},
    {"g": ("ctrl+home", "home")},  # twice: gg
    {"G": ("ctrl+end", "end")},
)
"""Keys of vim, each with the keys that it stands for; those of a pair work together, or neither does."""


def stands_for(screen: Screen[Any], key: str) -> str:
    """Return the key that a key of vim stands for on a screen now; empty if something else has it, or nothing does."""
    pair = next((pair for pair in VIM if key in pair), {})
    if not pair or any(screen.focused and screen.focused.check_consume_key(each, each) for each in pair):
        return ""
    bound = screen.active_bindings
    return "" if any(each in bound for each in pair) else next((other for other in pair[key] if other in bound), "")


class SearchedByTyping:
    """A list in which every letter begins a search, so that none is a key there, of vim or of a screen."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return (character or "").isalpha()


HELP: list[Binding] = [
    Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Help for what has the focus"),
    Binding("f1", "app.help", "Help", key_display="F1", tooltip="Help for what has the focus"),  # also in text fields
]
SEARCH: list[Binding] = [
    Binding("slash", "app.search", "Search", show=False, tooltip="Search the list for words"),
    Binding("n", "app.next_hit(1)", "Next hit", show=False, tooltip="Go to the next hit of the search"),
    Binding("N", "app.next_hit(-1)", "Previous hit", show=False, tooltip="Go to the previous hit of the search"),
]
"""Keys of the app that a dialog has, too, as those of the app do not reach it; ``SEARCH`` is of use in lists."""

MOVES = {
    "Choose another line": "cursor_up cursor_down",
    "Go a page up or down": "page_up page_down",
    "Go to the first or the last line": "first last",
    "Scroll": "scroll_up scroll_down",
    "Mark or unmark": "select",
    "Tick or untick": "toggle_button",
    "Press the button": "press",
    "Open the list of choices": "show_overlay",
    "Go to the next or the previous part": "app.focus_next app.focus_previous",
    "Copy the text that is marked with the mouse": "screen.copy_text",
}
"""The purposes of keys that move, mostly Textual's own, with their actions; those of a text field are not listed."""

_WORDS = {action: words for words, actions in MOVES.items() for action in actions.split()}


def purpose(screen: Screen[Any], active: ActiveBinding) -> str:
    """Return what a key is for; empty for a key of Textual's that needs no words."""
    binding = active.binding
    words = active.tooltip or _WORDS.get(binding.action, "")
    return words or (label(screen, binding) if binding.show or binding.id else "")


def written(binding: Binding) -> str:
    """Return how a key is written in help."""
    modifiers, key = binding.parse_key()
    return "+".join([*modifiers, "enter" if key == "enter" else format_key(key)])


def purposes(screen: Screen[Any]) -> dict[str, list[str]]:
    """Return what the keys that work now are for, each with its keys."""
    by_purpose: dict[str, list[str]] = {}
    vim = {stands_for(screen, key): "gg" if key == "g" else key for pair in VIM for key in pair}
    for active in working(screen):
        if (words := purpose(screen, active)) and "super" not in active.binding.key:
            keys = [written(active.binding), *filter(None, [vim.get(active.binding.key)])]
            by_purpose.setdefault(words, []).extend(keys)
    return {words: list(dict.fromkeys(keys)) for words, keys in by_purpose.items()}
