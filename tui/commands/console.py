"""Where commands print: results on standard output, progress and errors on standard error.

Nothing else prints, so that every text is made printable in one place; a test holds all other modules to it.
"""

import sys
from typing import TYPE_CHECKING

from fl.printable import printable_lines

if TYPE_CHECKING:
    from fl.console import SafeConsole

PIPED_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, which have no width."""


def stdout() -> "SafeConsole":
    """Return the console for results."""
    from fl.console import SafeConsole

    return SafeConsole() if sys.stdout.isatty() else SafeConsole(width=PIPED_WIDTH)


def stderr() -> "SafeConsole":
    """Return the console for progress."""
    from fl.console import SafeConsole

    return SafeConsole(stderr=True)


def result(text: str, *, end: str = "\n") -> None:
    """Print a result, unwrapped."""
    sys.stdout.write(printable_lines(text) + end)
    sys.stdout.flush()


def note(text: str) -> None:
    """Report progress, unwrapped."""
    sys.stderr.write(printable_lines(text) + "\n")
    sys.stderr.flush()
