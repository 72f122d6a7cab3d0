"""The names of all keys that settings can change."""

from textual.binding import Binding

from flmarket.core.names import unknown
from tui.screens.batch import BatchScreen
from tui.screens.compare import CompareScreen
from tui.screens.configure import ConfigureScreen
from tui.screens.home import HomeScreen
from tui.screens.market import MarketScreen
from tui.screens.training import TrainingScreen

SCREENS = (HomeScreen, ConfigureScreen, MarketScreen, CompareScreen, BatchScreen, TrainingScreen)


def key_names() -> list[str]:
    """Return the names, such as ``market.next-round``."""
    bindings = [binding for screen in SCREENS for binding in screen.BINDINGS if isinstance(binding, Binding)]
    return [binding.id for binding in bindings if binding.id]


def unknown_key(name: str) -> str:
    """Return what is wrong with a name; empty if nothing is."""
    return "" if name in (names := key_names()) else unknown("name", name, names)
