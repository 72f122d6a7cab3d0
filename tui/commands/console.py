"""Where results are printed."""

import sys

from rich.console import Console

PIPED_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, which have no width of their own."""


def stdout() -> Console:
    """Return the console for results."""
    return Console() if sys.stdout.isatty() else Console(width=PIPED_WIDTH)
