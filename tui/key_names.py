"""All keys: the names of those that settings can change, and each with where it works, for one to search."""

from collections.abc import Iterator, Mapping
from typing import get_type_hints

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode

from flmarket.core.names import unknown
from tui.panels.layout import PANELS
from tui.screens.batch import BatchScreen
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.dialog import Dialog
from tui.screens.help import Row
from tui.screens.home import HomeScreen
from tui.screens.market import MarketScreen
from tui.screens.training import TrainingScreen
from tui.style.key_bindings import VIM, written
from tui.widgets.line_view import LineView
from tui.widgets.tick_boxes import MarkList

SCREENS = (HomeScreen, ConfigureScreen, MarketScreen, CompareScreen, BatchScreen, TrainingScreen)


def key_names() -> list[str]:
    """Return the names, such as ``market.next-round``."""
    return [binding.id for screen in SCREENS for binding in _bindings(screen) if binding.id]


def unknown_key(name: str) -> str:
    """Return what is wrong with a name; empty if nothing is."""
    return "" if name in (names := key_names()) else unknown("name", name, names)


def every_key(app: type[App[None]], changed: Mapping[str, str]) -> Iterator[Row]:
    """Yield all keys, with what each is for and where it works; some have been changed, by their names."""
    for where, node in _places(app):
        found: dict[str, list[str]] = {}
        for binding in _bindings(node):
            words = binding.tooltip or binding.description
            for key in changed.get(binding.id or "", binding.key).split(","):
                found.setdefault(words, []).append(written(Binding(key.strip(), "")))
        yield from ((" ".join(dict.fromkeys(keys)), words, where) for words, keys in found.items())
    vim = " ".join("gg" if key == "g" else key for pair in VIM for key in pair)
    yield vim, "Move as the arrows, ctrl+home and ctrl+end do, where nothing else has these keys", "lists"


def _bindings(node: type[DOMNode]) -> Iterator[Binding]:
    """Yield the keys of a screen or a part of one; those that only repeat one of the screen's are left out."""
    found = (binding for binding in vars(node).get("BINDINGS", ()) if isinstance(binding, Binding))
    return (binding for binding in found if not binding.action.startswith("screen."))


def _places(app: type[App[None]]) -> Iterator[tuple[str, type[DOMNode]]]:
    for screen in SCREENS:
        yield screen.__name__.removesuffix("Screen"), screen
        for panel in PANELS if screen is MarketScreen else ():
            yield panel.NAME, panel
            if (target := get_type_hints(vars(panel)["target"].fget)["return"]) is not LineView:
                yield panel.NAME, target
    yield "lists", LineView
    yield "lists with boxes", MarkList
    yield "dialogs", Dialog
    yield "everywhere", app
