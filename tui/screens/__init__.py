"""The screens, one to a file, each imported when it is first asked for: the first picture should come at once."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui.screens.batch import BatchScreen
    from tui.screens.compare import CompareScreen
    from tui.screens.configure import ConfigureScreen
    from tui.screens.dialog import LeaveDialog, QuitDialog
    from tui.screens.help import HelpScreen, unknown_key
    from tui.screens.intervention_dialog import InterventionDialog
    from tui.screens.market import MarketScreen
    from tui.screens.run_dialogs import StartRunDialog
    from tui.screens.search import Palette, SearchLine, commands, is_listing, next_hit
    from tui.screens.training import TrainingScreen

__all__ = [
    "BatchScreen",
    "CompareScreen",
    "ConfigureScreen",
    "HelpScreen",
    "InterventionDialog",
    "LeaveDialog",
    "MarketScreen",
    "Palette",
    "QuitDialog",
    "SearchLine",
    "StartRunDialog",
    "TrainingScreen",
    "commands",
    "is_listing",
    "next_hit",
    "unknown_key",
]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "batch": ("BatchScreen",),
    "compare": ("CompareScreen",),
    "configure": ("ConfigureScreen",),
    "dialog": ("LeaveDialog", "QuitDialog"),
    "help": ("HelpScreen", "unknown_key"),
    "intervention_dialog": ("InterventionDialog",),
    "market": ("MarketScreen",),
    "search": ("Palette", "SearchLine", "commands", "is_listing", "next_hit"),
    "run_dialogs": ("StartRunDialog",),
    "training": ("TrainingScreen",),
}
"""The names of each module, as the imports above and ``__all__`` have them."""


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
