"""The console that results are printed on."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, which have no width."""


def stdout() -> "Console":
    """Return the console for results."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=PIPED_WIDTH)
